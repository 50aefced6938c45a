"""The ranks of a run, each a process that runs the script: started, followed, and ended.

A rank reports through a pipe, which needs no space on the disk: the script may have filled it.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..._frames import frames, raised_at
from ..._process import innermost_frames

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

# On Linux torch is loaded once, and workers are forked from that process: 0.1 s a start instead of 4. Elsewhere each
# worker loads torch anew: on macOS forking a process that has used its libraries is not safe.
_FORKS = sys.platform == "linux" and "forkserver" in multiprocessing.get_all_start_methods()
START_METHOD = "forkserver" if _FORKS else "spawn"
_PRELOAD = ["torch", "torch.distributed", "torch.nn.parallel", "torch.utils.data.distributed", "torch._dynamo"]
_STARTUP_SECONDS = 120.0  # until the scripts begin: without forking each imports torch, on a busy machine
GRACE_SECONDS = 8.0  # for the others to notice a failure by themselves, and for torch's clean-up, which rarely hangs
_REPORT_SECONDS = 0.05  # from one report to the next
_MAX_ERROR_LETTERS = 900  # a report of less than 4 KiB is one write, from any thread


def prepare() -> None:
    """Load torch in the background, for processes that are started later; return at once."""
    if START_METHOD == "forkserver":
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload(_PRELOAD)
        forkserver.ensure_running()


class Worker:
    """One rank: its process, the folder of its output, and a pipe for its reports."""

    def __init__(self, script: Path, folder: Path, settings: dict[str, str]) -> None:
        prepare()
        folder.mkdir()
        self.folder, self.stopped = folder, False
        self._reports: dict[str, Any] = {}
        context = multiprocessing.get_context(START_METHOD)
        self._pipe, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(script, folder, settings, theirs), daemon=True)  # type: ignore[attr-defined]
        with _without_main():
            self.process.start()
        theirs.close()

    @property
    def reports(self) -> dict[str, Any]:
        """The reports so far: "started", the current line "at", "ended"; of an error "words", "when" and "line"."""
        with suppress(OSError, EOFError):
            while self._pipe.poll():
                self._reports |= self._pipe.recv()
        return self._reports

    @property
    def done(self) -> bool:
        """Whether the process has ended."""
        return not self.process.is_alive()

    @property
    def killed(self) -> bool:
        """Whether it had to be ended before the end of the script."""
        return self.stopped and "ended" not in self.reports

    @property
    def failed(self) -> bool:
        """Whether it was killed or left with an error. A clean-up that hangs after the script's end is neither."""
        return self.killed if self.stopped else bool(self.process.exitcode)

    def kill(self) -> None:
        """End it, and where the system has process groups all that it has started."""
        if self.process.pid and hasattr(os, "killpg"):  # 0 would be our own group
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        if not self.done:
            self.process.kill()  # not in a session of its own
        self.process.join()

    def read(self, name: str) -> str:
        """Return the contents of its file "printed" or "errors"."""
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def wait_all(workers: list[Worker], seconds: float) -> bool:
    """Wait until all have ended; return whether time ran out.

    Where one has failed, or all are at the end of the script, those that still run have GRACE_SECONDS.
    """
    from multiprocessing.connection import wait

    deadline, started, closing = time.monotonic() + _STARTUP_SECONDS, False, False
    while running := [worker.process.sentinel for worker in workers if not worker.done]:
        if time.monotonic() >= deadline:
            return not closing
        wait(running, _REPORT_SECONDS)
        begun = ["started" in worker.reports or worker.done for worker in workers]
        if not started and all(begun):
            started, deadline = True, time.monotonic() + seconds
        ended = all(worker.done or "ended" in worker.reports for worker in workers)
        if not closing and (ended or any(worker.failed for worker in workers)):
            closing, deadline = True, min(deadline, time.monotonic() + GRACE_SECONDS)
    return False


def stop_all(workers: list[Worker]) -> None:
    """End all that still run; all are marked before the first one is ended, since that is an error for the others."""
    for worker in workers:
        worker.stopped = not worker.done
    for worker in workers:
        worker.kill()


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the module ``__main__``: a rank would import it, and a script without a guard would launch itself again."""
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _work(script: Path, folder: Path, settings: dict[str, str], starter: Connection[Any, Any]) -> None:
    """Run a script as ``python script.py`` would, in a session of its own that ends when the starter is gone."""
    if hasattr(os, "setsid"):
        os.setsid()
    threading.Thread(target=_follow, args=(starter, str(script), folder), daemon=True).start()
    try:
        os.dup2(os.open(folder / "errors", os.O_WRONLY | os.O_CREAT), 2)
        sys.stdout = (folder / "printed").open("w", encoding="utf-8", buffering=1)
        os.dup2(sys.stdout.fileno(), 1)
        # Temporary files of the script or torch are removed with our folder, however this process ends.
        os.environ.update(settings | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder)))
        tempfile.tempdir = None
        os.chdir(script.parent)
        sys.argv, sys.path[:0] = [str(script)], [str(script.parent)]
        import torch

        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))  # if torch was loaded before the variable
        starter.send({"started": True})
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as left:
            if left.code not in (None, 0):
                raise
        for thread in threading.enumerate():  # as Python itself waits
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        starter.send({"ended": True})
        atexit._run_exitfuncs()  # multiprocessing ends without them
        sys.stdout.flush()
    except BaseException as error:
        starter.send(_report(error, str(script)))
        with suppress(OSError):  # the disk may be full
            sys.stdout.flush()
        os._exit(1)  # without clean-up, in which a process group may wait for others


def _follow(starter: Connection[Any, Any], script: str, folder: Path) -> None:
    """Report the main thread's line of the script to the starter at intervals; end with the starter."""
    with suppress(OSError):  # the starter is gone
        while True:
            calls = frames(innermost_frames().get(threading.main_thread().ident or 0))
            lines = (call.f_lineno for call in calls if call.f_code.co_filename == script)
            starter.send({"at": line} if (line := next(lines, 0)) else {})
            time.sleep(_REPORT_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # other ranks still use it
        folder.parent.rmdir()
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _report(error: BaseException, script: str) -> dict[str, Any]:
    raised, message = raised_at(error, script.__eq__), " ".join(str(error).split())
    line = raised and raised[1]
    return {"error": type(error).__name__, "words": message[:_MAX_ERROR_LETTERS], "when": time.time(), "line": line}
