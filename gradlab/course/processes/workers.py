"""Worker processes, each of which runs a launched script as one rank, and the functions that watch and end them.

A rank reports through a pipe and not through a file, because the script may have filled the disk.
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

# On Linux, one server process loads torch and forks the workers, which takes 0.1 s for each worker instead of 4 s.
# Elsewhere, each worker loads torch itself: on macOS, it is not safe to fork a process that has used system libraries.
_FORKS = sys.platform == "linux" and "forkserver" in multiprocessing.get_all_start_methods()
START_METHOD = "forkserver" if _FORKS else "spawn"
_PRELOAD = ["torch", "torch.distributed", "torch.nn.parallel", "torch.utils.data.distributed", "torch._dynamo"]
_STARTUP_SECONDS = 120.0  # limit until all scripts have started; without forking, each worker imports torch
GRACE_SECONDS = 8.0  # limit for other ranks to notice a failure, and for torch's clean-up, which may hang
_REPORT_SECONDS = 0.05  # pause between two reports
_MAX_ERROR_CHARS = 900  # so that a report stays below 4 KiB, which a pipe takes in one piece even if two threads send


def prepare() -> None:
    """On Linux, start to load torch in the background for the processes of ``launch``, and return at once."""
    if START_METHOD == "forkserver":
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload(_PRELOAD)
        forkserver.ensure_running()


class Worker:
    """The process of one rank, with a folder for its output and a pipe for its reports."""

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
        """The latest value of each report: "started", "at" (a line), "ended", "error", "words", "when" and "line"."""
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
        """Whether ``stop_all`` had to end the process before the end of its script."""
        return self.stopped and "ended" not in self.reports

    @property
    def failed(self) -> bool:
        """Whether the process was killed before its script ended, or ended by itself with an exit code other than 0."""
        return self.killed if self.stopped else bool(self.process.exitcode)

    def kill(self) -> None:
        """End the process and, on systems with process groups, all processes that it has started."""
        if self.process.pid and hasattr(os, "killpg"):  # killpg(0) would end this process's own group
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        if not self.done:
            self.process.kill()  # the process had no group yet if it had not called setsid
        self.process.join()

    def read(self, name: str) -> str:
        """Return the text in the output file ``name`` ("printed" or "errors"), or "" if the file does not exist."""
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def wait_all(workers: list[Worker], seconds: float) -> bool:
    """Wait until all workers have ended, or until time runs out; return True only if a script was still running then.

    Once a worker has failed, or all have finished the script, wait at most GRACE_SECONDS more, and return False.
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
    """Mark all running workers as stopped, and then end them; ending one worker first would make the others fail."""
    for worker in workers:
        worker.stopped = not worker.done
    for worker in workers:
        worker.kill()


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide ``__main__``, so that a worker does not import it; without a guard, that would launch the ranks again."""
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _work(script: Path, folder: Path, settings: dict[str, str], starter: Connection[Any, Any]) -> None:
    """Run ``script`` in this process as ``python script.py`` would, in a new session, and report to ``starter``."""
    if hasattr(os, "setsid"):
        os.setsid()
    threading.Thread(target=_follow, args=(starter, str(script), folder), daemon=True).start()
    try:
        os.dup2(os.open(folder / "errors", os.O_WRONLY | os.O_CREAT), 2)
        sys.stdout = (folder / "printed").open("w", encoding="utf-8", buffering=1)
        os.dup2(sys.stdout.fileno(), 1)
        # Temporary files of the script and of torch go to ``folder``, which is removed however this process ends.
        os.environ.update(settings | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder)))
        tempfile.tempdir = None
        os.chdir(script.parent)
        sys.argv, sys.path[:0] = [str(script)], [str(script.parent)]
        import torch

        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))  # torch may have been loaded before this was set
        starter.send({"started": True})
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as left:
            if left.code not in (None, 0):
                raise
        for thread in threading.enumerate():  # wait for threads, as Python does at exit
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        starter.send({"ended": True})
        atexit._run_exitfuncs()  # a multiprocessing child does not call what atexit registers
        sys.stdout.flush()
    except BaseException as error:
        starter.send(_report(error, str(script)))
        with suppress(OSError):  # the disk may be full
            sys.stdout.flush()
        os._exit(1)  # skip clean-up, in which torch.distributed may wait for other ranks


def _follow(starter: Connection[Any, Any], script: str, folder: Path) -> None:
    """Report the script's current line at intervals, until the launching process ends; then end this process, too."""
    with suppress(OSError):  # send() fails once the launching process has ended
        while True:
            calls = frames(innermost_frames().get(threading.main_thread().ident or 0))
            lines = (call.f_lineno for call in calls if call.f_code.co_filename == script)
            starter.send({"at": line} if (line := next(lines, 0)) else {})
            time.sleep(_REPORT_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # other ranks may still have their folders in it
        folder.parent.rmdir()
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _report(error: BaseException, script: str) -> dict[str, Any]:
    raised, message = raised_at(error, script.__eq__), " ".join(str(error).split())
    line = raised and raised[1]
    return {"error": type(error).__name__, "words": message[:_MAX_ERROR_CHARS], "when": time.time(), "line": line}
