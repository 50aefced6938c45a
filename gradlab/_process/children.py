"""Child processes that end with their parent, even if the parent is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any


def end_with_parent() -> None:
    """Start a thread that ends this multiprocessing child as soon as its parent ends, even if the parent is killed."""
    import multiprocessing
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        wait([parent.sentinel])  # the sentinel becomes ready when the parent ends, even if it is killed
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


_FOLLOWING_MODULE = """import os, runpy, signal, threading
def follow():
    os.read({0}, 1)  # until the other end of the pipe is closed
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=follow, daemon=True).start()
runpy.run_module({1!r}, run_name="__main__", alter_sys=True)
"""
_GRACE = 45.0  # seconds that a program may take to end after SIGTERM; torchrun kills its workers only after 30


@contextmanager
def running_module(module: str, arguments: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Yield a Popen that runs ``python -m module`` and receives SIGTERM when the block or this process ends.

    ``options`` are passed to Popen. On Windows, which has no ``pass_fds``, the program ends only with the block. Its
    process group then receives a CTRL_BREAK_EVENT, because SIGTERM would leave the program's children running.
    """
    if sys.platform == "win32":
        group = subprocess.CREATE_NEW_PROCESS_GROUP
        process = subprocess.Popen([sys.executable, "-m", module, *arguments], creationflags=group, **options)
        end = partial(process.send_signal, signal.CTRL_BREAK_EVENT)
    else:
        theirs, ours = os.pipe()
        end = partial(os.close, ours)
        code = _FOLLOWING_MODULE.format(theirs, module)
        try:
            process = subprocess.Popen([sys.executable, "-c", code, *arguments], pass_fds=(theirs,), **options)
        except BaseException:
            end()
            raise
        finally:
            os.close(theirs)
    try:
        yield process
    finally:  # also after an interrupt
        end()
        if process.poll() is None:
            try:
                process.communicate(timeout=_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                with suppress(subprocess.TimeoutExpired):  # a worker that survives may keep the pipes open
                    process.communicate(timeout=5)
