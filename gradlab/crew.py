"""The processes of a run: started, heard, asked where they stand, and ended with all that they have started."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from .aftermath import Rank
from .worker import work

_STANDS = b"(most recent call first)"  # faulthandler's words before it tells where a process stands
_STARTING = 120.0  # seconds until the scripts begin: where nothing is forked each imports torch, on a busy machine
_GRACE = 8.0  # seconds for the others to notice a failure by themselves
_LOOK = 3.0  # seconds at most for the processes to say where they stand
# What DDP needs is loaded once, and every worker is a copy of that: 0.1 s a start instead of 4. macOS does not
# take a copy of a process that has used its libraries well, so there each worker loads torch anew.
_LOADED = ["torch", "torch.distributed", "torch.nn.parallel", "torch.utils.data.distributed", "torch._dynamo"]
_METHOD = "forkserver" if sys.platform == "linux" else "spawn"


def prepare() -> None:
    """Begin to load torch in the background, for processes that are started later; returns at once."""
    if _METHOD == "forkserver":
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload(_LOADED)
        forkserver.ensure_running()


class Worker:
    """One process, the line to it, and what it leaves behind."""

    def __init__(self, script: Path, folder: Path, rank: int, settings: dict[str, str]) -> None:
        prepare()
        context: Any = multiprocessing.get_context(_METHOD)
        self.line: Connection
        self.line, theirs = context.Pipe()
        self.output, self.errors = folder / f"output{rank}", folder / f"errors{rank}"
        arguments = (str(script), settings, str(self.output), str(self.errors), theirs)
        self.process: BaseProcess = context.Process(target=work, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.started = False
        self.raised: dict[str, Any] | None = None
        self.ended_by_us, self.asked_at = False, -1
        self.printed = self.stderr = ""

    def hear(self) -> None:
        """Take in what it has said."""
        with suppress(EOFError, OSError):
            while self.line.poll():
                kind, what = self.line.recv()
                if kind == "started":
                    self.started = True
                else:
                    self.raised = what

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return not self.process.is_alive()

    @property
    def failed(self) -> bool:
        """Whether it has ended badly."""
        return self.over and self.process.exitcode != 0

    def ask(self) -> None:
        """Have it write to its stderr where it stands, if it has come as far as to hear that; it is to be ended."""
        self.ended_by_us = True
        self.asked_at = self.errors.stat().st_size if self.started else -1
        if self.started and self.process.pid:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGUSR1)

    @property
    def answered(self) -> bool:
        """Whether it has said where it stands, or never will."""
        if self.asked_at < 0 or self.over:
            return True
        return _STANDS in self.errors.read_bytes()[self.asked_at :]

    def end(self) -> None:
        """End it, and whatever it has started; take in what it has left."""
        if self.process.pid:  # 0 would be our own group
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        if not self.over:
            self.process.kill()  # not yet in a session of its own
        self.process.join()
        self.hear()
        self.line.close()
        self.printed, self.stderr = (
            path.read_text(errors="replace") if path.exists() else "" for path in (self.output, self.errors)
        )

    def rank(self) -> Rank:
        """Return how it ended."""
        return Rank(self.process.exitcode, self.raised, self.ended_by_us, self.stderr)


def watch(ranks: list[Worker], seconds: float) -> bool:
    """Wait until all have ended, or one has failed and the others had their grace; return whether time ran out."""
    until, started = time.monotonic() + _STARTING, False
    failed = False
    while running := [worker for worker in ranks if not worker.over]:
        left = until - time.monotonic()
        if left <= 0:
            return not failed
        wait([worker.process.sentinel for worker in running], min(left, 0.05))
        for worker in ranks:
            worker.hear()
        if not started and all(worker.started or worker.over for worker in ranks):
            started, until = True, time.monotonic() + seconds
        if not failed and any(worker.failed for worker in ranks):
            failed, until = True, min(until, time.monotonic() + _GRACE)
    return False


def end(ranks: list[Worker]) -> None:
    """End all that still run: first each says where it stands, because the end of one is an error for the next."""
    running = [worker for worker in ranks if not worker.over]
    for worker in running:
        worker.ask()
    until = time.monotonic() + _LOOK
    while not all(worker.answered for worker in running) and time.monotonic() < until:
        time.sleep(0.02)
    if running:
        time.sleep(0.1)  # what has been begun is written to its end
    for worker in ranks:
        worker.end()
