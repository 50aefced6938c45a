"""What an answer may do to a check, and what a check leaves of it: a verdict, and the kernel as it was."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch
from process_state import nothing_left
from torch import nn

from gradlab._process import preserving_torch_state
from gradlab.course.exercises import exercise
from gradlab.course.exercises.guard import TroubleError, guarded


class Unwritable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Incomparable:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


class NotEvenAnException(BaseException): ...


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
VALUES = {
    "sparse": torch.ones(1).to_sparse(),
    "sparse matrix": torch.eye(3).to_sparse(),
    "meta": torch.empty(4, device="meta"),
    "complex": torch.ones(4, dtype=torch.complex64),
    "8 bits": torch.ones(4).to(torch.float8_e4m3fn),
    "large": torch.zeros(()).expand(2, 10**9),
    "many": list(range(10**5)),
    "too large for a float": 10**400,
    "signalling NaN": Decimal("sNaN"),
    "no repr": Unwritable(),
    "no repr inside": [Unwritable()],
    "no repr as a value": {1: Unwritable()},
    "no ==": Incomparable(),
    "an array in a list": [np.ones(2)] * 6,
    "contains itself": CIRCLE,
}


def unruly(*arguments: object) -> None:
    torch.nn.modules.module.register_module_forward_pre_hook(print)
    torch.nn.modules.module.register_module_full_backward_hook(lambda *call: None)
    torch.nn.modules.module.register_module_parameter_registration_hook(lambda *call: None)
    sys.modules["torch.optim.optimizer"].register_optimizer_step_pre_hook(lambda *call: None)
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")


def test_what_an_answer_sets_for_all_of_pytorch_is_put_back() -> None:
    with nothing_left():
        assert exercise("gradient_of_each").check(unruly).state == "not yet"


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_whatever_is_returned_is_a_verdict(value: Any) -> None:
    for name, answer in (("gradient_of_each", lambda *args: value), ("amp_order", value)):  # of numbers, of words
        verdict = exercise(name).check(answer)
        assert verdict.state == "not yet"
        assert len(verdict._repr_mimebundle_()["text/plain"]) < 2000


def test_what_yields_for_ever_is_not_waited_for() -> None:
    assert exercise("stale_steps").check(lambda *args: itertools.repeat(1)).state == "not yet"


@pytest.mark.parametrize(
    "error", [MuteError(), NotEvenAnException("own"), StopIteration(), KeyboardInterrupt()], ids=repr
)
def test_whatever_is_raised_is_a_verdict_but_ctrl_c(error: BaseException) -> None:
    def answer(*args: Any) -> None:
        raise error

    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            exercise("train_one_epoch").check(answer)
    else:
        assert type(error).__name__ in exercise("train_one_epoch").check(answer).remark


def deaf(*args: Any) -> None:
    while True:
        try:  # noqa: SIM105
            time.sleep(0.001)
        except BaseException:
            pass


def busy(*args: Any) -> None:
    while True:
        try:  # noqa: SIM105
            sum(range(100))
        except:  # noqa: E722
            pass


def in_and_out(*args: Any) -> None:
    while True:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            pass


def asleep(*args: Any) -> None:
    time.sleep(600)


def backtracking(*args: Any) -> None:
    re.match(r"(a+)+$", "a" * 60 + "b")


class Asleep:
    def __call__(self, *args: Any) -> None:
        time.sleep(600)


ENDLESS = [deaf, busy, in_and_out, backtracking]  # a call into C ends where it looks for signals
KINDS = [functools.cache(asleep), functools.partial(asleep, 1), Asleep(), Asleep().__call__, torch.no_grad()(asleep)]


@pytest.mark.parametrize("answer", [*ENDLESS, *KINDS])
def test_what_does_not_end_is_stopped_whatever_it_catches_and_its_line_is_told(answer: Callable[..., None]) -> None:
    tracing, handler = sys.gettrace(), signal.getsignal(signal.SIGALRM)
    with preserving_torch_state(), pytest.raises(TroubleError, match=r"did not end .* in line"):
        guarded(answer, answer, 0.02)
    assert sys.gettrace() is tracing
    assert not torch.is_autocast_enabled("cpu")
    assert signal.getsignal(signal.SIGALRM) is handler
    time.sleep(0.12)  # nothing arrives later


def test_a_timer_that_ran_before_goes_on_and_its_handler_is_back() -> None:
    heard: list[int] = []
    own = lambda number, frame: heard.append(number)  # noqa: E731
    before = signal.signal(signal.SIGALRM, own)
    timer = signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        assert guarded(lambda: sum(range(100)), sum, 5.0) == 4950
        assert signal.getsignal(signal.SIGALRM) is own
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 1.0
        with pytest.raises(TroubleError, match="did not end"):
            guarded(asleep, asleep, 0.02)
        while not heard:
            time.sleep(0.01)
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)


def test_what_is_put_around_an_answer_takes_itself_off_in_peace() -> None:
    done: list[bool] = []
    # A file of its own, as a ledger's: only what is in the answer's file is the learner's.
    here: dict[str, Any] = {"done": done, "answer": deaf, "time": time}
    source = (
        "def work():\n    try:\n        answer()\n    finally:\n"
        "        for _ in range(20):\n            time.sleep(0.01)\n        done.append(True)\n"
    )
    exec(compile(source, "ledger", "exec"), here)
    with pytest.raises(TroubleError, match="did not end"):
        guarded(here["work"], deaf, 0.1)
    assert done == [True]


def test_an_answer_that_ends_in_one_long_call_is_a_verdict() -> None:
    """The stop arrives when the call is over, and that may be after the answer."""
    it = exercise("train_one_epoch")
    it = dataclasses.replace(it, definition=dataclasses.replace(it.definition, seconds=0.05))
    square = torch.ones(1500, 1500)
    for answer in (lambda *args: square @ square, lambda *args: time.sleep(0.35)):
        assert it.check(answer).state == "not yet"


@pytest.mark.skipif(not hasattr(time, "pthread_getcpuclockid"), reason="no clock for one thread")
def test_the_work_of_other_threads_is_not_the_answers() -> None:
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            hashlib.sha256(bytes(2**22)).digest()

    with ThreadPoolExecutor(1) as other:
        other.submit(work)
        try:
            assert guarded(lambda: time.sleep(0.5), asleep, 0.3) is None
        finally:
            over.set()


def grad_mode_off(*args: Any) -> None:
    torch.set_grad_enabled(False)


def autocast_left_on(*args: Any) -> None:
    torch.autocast("cpu", dtype=torch.bfloat16).__enter__()


def inference_left_on(*args: Any) -> None:
    grad_mode_off.mode = torch.inference_mode()  # type: ignore[attr-defined]
    grad_mode_off.mode.__enter__()  # type: ignore[attr-defined]


def other_defaults(*args: Any) -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    sys.setrecursionlimit(5000)


def seeds(*args: Any) -> None:
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)


@pytest.mark.parametrize("rude", [grad_mode_off, autocast_left_on, inference_left_on, other_defaults, seeds])
def test_the_kernel_is_as_before(rude: Callable[..., None]) -> None:
    def state() -> list[Any]:
        torch.autocast_increment_nesting()
        return [
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled("cpu"),
            torch.autocast_decrement_nesting(),
            torch.get_default_dtype(),
            torch.get_default_device(),
            sys.getrecursionlimit(),
            random.getstate(),
            np.random.get_state()[1].tolist(),  # type: ignore[index, call-overload, unused-ignore]
            torch.get_rng_state().tolist(),
        ]

    for name, enabled in (("train_one_epoch", True), ("curvature_from", False)):
        with torch.set_grad_enabled(enabled):
            before = state()
            assert exercise(name).check(rude).state == "not yet"
            assert state() == before
    assert nn.Linear(1, 1)(torch.ones(1)).dtype is torch.float32


def train(model: nn.Module, loss_fn: Any, batches: Any, lr: float) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


def seeds_torch(*args: Any) -> None:
    torch.manual_seed(1)


def test_a_right_answer_is_right_in_two_threads_at_once() -> None:
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda _: exercise("train_one_epoch").check(train), range(8)))
    assert all(found), found


def test_a_check_leaves_the_random_numbers_of_other_threads() -> None:
    over = threading.Event()

    def draw() -> list[Any]:
        torch.manual_seed(3)
        random.seed(3)
        drawn = []
        while len(drawn) < 30_000 or not over.is_set():
            drawn.append((torch.rand(1).item(), random.random()))
        return drawn

    with ThreadPoolExecutor(1) as pool:
        drawing = pool.submit(draw)
        states = []
        try:
            for _ in range(3):
                states.append(exercise("train_one_epoch").check(train).state)
                states.append(exercise("curvature_from").check(seeds_torch).state)
        finally:
            over.set()
        drawn = drawing.result()
    assert states == ["right", "not yet"] * 3
    torch.manual_seed(3)
    random.seed(3)
    assert drawn == [(torch.rand(1).item(), random.random()) for _ in drawn]


@pytest.mark.slow
def test_an_answer_that_forks_leaves_one_process() -> None:
    script = (
        "import os, gradlab\n"
        "def answer(*args):\n    os.fork()\n"
        "print(gradlab.exercise('train_one_epoch').check(answer).state, flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "not yet\n"
