"""The main thread: what other threads hand over to it, what it leaves waiting, and what an interrupt ends."""

from __future__ import annotations

import contextvars
import signal
import threading
from collections.abc import Callable

import pytest

from gradlab._process import MainThread
from gradlab.front import on_interrupt
from gradlab.front.widget import _interrupted


def in_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_an_interrupt_tells_all_that_play_and_no_other() -> None:
    ended: list[str] = []
    acts = {name: (lambda name=name: ended.append(name)) for name in ("one", "other")}
    for act in acts.values():
        on_interrupt(act, enabled=True)
    _interrupted(signal.SIGINT, None)
    assert sorted(ended) == ["one", "other"]
    on_interrupt(acts["one"], enabled=False)
    _interrupted(signal.SIGINT, None)
    assert ended[2:] == ["other"]
    on_interrupt(acts["other"], enabled=False)


def test_work_is_done_once_in_the_context_that_handed_it_over() -> None:
    main, soon, done = MainThread(), [], []
    name = contextvars.ContextVar("name", default="")

    def hand_over() -> None:
        for number in (1, 2):
            name.set(f"request {number}")
            main.hand_over(lambda number=number: done.append((number, name.get())), soon.append)

    in_a_thread(hand_over)
    assert not done
    soon.pop(0)()  # as the event loop does between two cells
    assert done == [(1, "request 1")]
    main.serve()
    assert done == [(1, "request 1"), (2, "request 2")]
    soon.pop(0)()
    assert len(done) == 2


def test_nothing_is_served_where_it_would_be_in_the_way() -> None:
    main, done = MainThread(), []
    main.hand_over(lambda: done.append("first"), lambda work: None)
    in_a_thread(main.serve)
    with main.hold():
        main.serve()
        assert not main.is_wanted
    assert not done
    assert main.is_wanted
    main.hand_over(main.serve, lambda work: None)  # work that comes to serve does not begin with other work
    main.hand_over(lambda: done.append("last"), lambda work: None)
    main.serve()
    assert done == ["first", "last"]


def test_an_interrupt_of_what_was_served_ends_the_cell() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    main, soon = MainThread(), []
    main.hand_over(interrupted, soon.append)
    soon.pop()()  # between two cells it ends the work alone
    main.hand_over(interrupted, soon.append)
    with pytest.raises(KeyboardInterrupt):
        main.serve()
    main.serve()
