"""The ranks of a run, each a process that runs the script: started, asked where they stand, and ended."""

from __future__ import annotations

import atexit
import faulthandler
import json
import multiprocessing
import os
import runpy
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path

from .report import RankError, RankExit

# On Linux what DDP needs is loaded once, and every worker is forked from that: 0.1 s a start instead of 4. macOS does
# not take a copy of a process that has used its libraries well, so there each worker loads torch anew.
START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
_PRELOAD = ["torch", "torch.distributed", "torch.nn.parallel", "torch.utils.data.distributed", "torch._dynamo"]
_STARTUP = 120.0  # seconds until the scripts begin: where nothing is forked each imports torch, on a busy machine
GRACE = 8.0  # seconds for the others to notice a failure by themselves
_REPLY = 3.0  # seconds at most for the processes to write where they stand


def prepare() -> None:
    """Begin to load torch in the background, for processes that are started later; returns at once."""
    if START_METHOD == "forkserver":
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload(_PRELOAD)
        forkserver.ensure_running()


class Worker:
    """One rank: its process, and the folder in which it leaves what it prints, raises, and where it stood."""

    def __init__(self, script: Path, folder: Path, settings: dict[str, str]) -> None:
        prepare()
        folder.mkdir()
        self.folder, self.killed, self._asked = folder, False, False
        context = multiprocessing.get_context(START_METHOD)
        self.process = context.Process(target=_work, args=(script, folder, settings), daemon=True)  # type: ignore[attr-defined]
        self.process.start()

    @property
    def started(self) -> bool:
        """Whether the script has begun."""
        return (self.folder / "started").exists()

    @property
    def done(self) -> bool:
        """Whether the process has ended."""
        return not self.process.is_alive()

    def request_traceback(self) -> None:
        """Have it write where it stands, if its script has begun; it is to be killed."""
        self.killed, self._asked = True, self.started
        if self._asked:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGUSR1)

    @property
    def replied(self) -> bool:
        """Whether it has begun to write where it stands, or never will."""
        return not self._asked or self.done or bool(self.read("traceback"))

    def kill(self) -> None:
        """End it, and whatever it has started."""
        if self.process.pid:  # 0 would be our own group
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        if not self.done:
            self.process.kill()  # not yet in a session of its own
        self.process.join()

    def read(self, name: str) -> str:
        """Return what it has left under this name."""
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""

    def exit(self) -> RankExit:
        """Return how it ended."""
        raised = self.read("raised")
        error = RankError(**json.loads(raised)) if raised else None
        return RankExit(self.process.exitcode, error, self.killed, self.read("traceback"))


def wait_all(workers: list[Worker], seconds: float) -> bool:
    """Wait until all have ended, or one has failed and the others had their grace; return whether time ran out."""
    deadline, started, failed = time.monotonic() + _STARTUP, False, False
    while running := [worker.process.sentinel for worker in workers if not worker.done]:
        if time.monotonic() >= deadline:
            return not failed
        wait(running, 0.05)
        if not started and all(worker.started or worker.done for worker in workers):
            started, deadline = True, time.monotonic() + seconds
        if not failed and any(worker.process.exitcode for worker in workers):
            failed, deadline = True, min(deadline, time.monotonic() + GRACE)
    return False


def stop_all(workers: list[Worker]) -> None:
    """End all that still run: first each writes where it stands, because the end of one is an error for the next."""
    running = [worker for worker in workers if not worker.done]
    for worker in running:
        worker.request_traceback()
    deadline = time.monotonic() + _REPLY
    while not all(worker.replied for worker in running) and time.monotonic() < deadline:
        time.sleep(0.02)
    if running:
        time.sleep(0.1)  # what has been begun is written to its end
    for worker in workers:
        worker.kill()


def _work(script: Path, folder: Path, settings: dict[str, str]) -> None:
    """Run a script as ``python script`` would, in a session of its own that ends when the starter is gone."""
    os.setsid()
    threading.Thread(target=_end_with_the_starter, daemon=True).start()
    sys.stdout = (folder / "printed").open("w", buffering=1)
    os.dup2(sys.stdout.fileno(), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    faulthandler.register(signal.SIGUSR1, (folder / "traceback").open("w"), all_threads=False)
    os.environ.update(settings)
    os.chdir(script.parent)
    sys.argv, sys.path[:0] = [str(script)], [str(script.parent)]
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))  # where torch was there before the variable
    (folder / "started").touch()
    try:
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as left:
            if left.code not in (None, 0):
                raise
        atexit._run_exitfuncs()  # multiprocessing ends without them
    except BaseException as error:
        (folder / "raised").write_text(json.dumps(_raised(error, str(script))._asdict()))
        sys.stdout.flush()
        os._exit(1)  # at once: after an error a process group may wait for others in its clean-up


def _end_with_the_starter() -> None:
    """Wait until the starter has ended, and end with all children."""
    starter = multiprocessing.parent_process()
    assert starter is not None
    starter.join()
    os.killpg(0, signal.SIGKILL)


def _raised(error: BaseException, script: str) -> RankError:
    """Return what was raised, where in the script, when, and whether it was while the processes were to meet."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == script]
    meeting = any(frame.name == "init_process_group" for frame in frames)
    return RankError(
        type(error).__name__, " ".join(str(error).split()), lines[-1] if lines else None, time.time(), meeting
    )
