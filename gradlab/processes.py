"""Start a script in several processes that meet through torch.distributed, and say in words what became of them.

``launch`` is to a notebook what ``torchrun`` is to a terminal: it gives each process RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT, waits, and ends all of them when one fails or the time is over. Nothing of it can be reached from
another machine: the meeting point is bound to 127.0.0.1 at a free port, and gloo is told to use the loopback alone.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from .aftermath import NO_NETWORK, Launched, Rank, aftermath
from .worker import work

_MOST = 8
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


def launch(
    script: str | Path, processes: int = 2, seconds: float = 30.0, settings: Mapping[str, str] | None = None
) -> Launched:
    """Run a script in so many processes at once and return what each printed, or in words what went wrong.

    script: a file with plain PyTorch; each process runs all of it, in the file's folder.
    seconds: how long it may take, counted from when all have begun; after that they are ended.
    settings: further environment variables.

    Raises TypeError, ValueError or FileNotFoundError for what cannot be started; whatever the processes do (raise,
    hang, get killed, fail to meet) is in the result. No process is left behind.
    """
    path = _checked(script, processes, seconds)
    try:
        store, port = _meeting_point()
    except (OSError, RuntimeError) as error:
        return Launched.failed(NO_NETWORK.format(_first(error)))
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="gradlab-") as folder:
        ranks: list[_Worker] = []
        try:
            for rank in range(processes):
                ranks.append(_Worker(path, Path(folder), rank, _settings(rank, processes, port) | dict(settings or {})))
            late = _watch(ranks, seconds)
        finally:  # also when the learner interrupts
            _end(ranks)
        del store
        told = aftermath([worker.rank() for worker in ranks], path, seconds if late else None)
    return Launched(
        told == "", tuple(worker.printed for worker in ranks), told, time.perf_counter() - began, _pids(ranks)
    )


def torchrun(script: str | Path, processes: int = 2, seconds: float = 60.0) -> Launched:
    """Run a script under PyTorch's own starter, ``python -m torch.distributed.run``, in a process of its own."""
    path = _checked(script, processes, seconds)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    began, late = time.perf_counter(), False
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **_loopback()}
    started = subprocess.Popen(
        [*command, path.name],
        cwd=path.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, errors = started.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        late = True
    finally:
        if started.poll() is None:
            family = _family(started.pid)
            started.terminate()  # asked politely, it ends its workers, which are in sessions of their own
            with suppress(subprocess.TimeoutExpired):
                started.communicate(timeout=5)
            for pid in family:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            started.wait()
    took = time.perf_counter() - began
    if late:
        return Launched(False, (), f"torchrun was not done after {seconds:g} seconds, and was ended.", took, ())
    if started.returncode:
        said = [text for text in errors.splitlines() if re.match(r"(\[rank\d+\]: ?)?\w*(Error|Exception)\b", text)]
        killed = re.findall(r"\bSIG[A-Z]+\b", errors)
        why = (said or killed or [f"exit code {started.returncode}"])[0]
        return Launched(False, (printed,), f"torchrun ended with an error: {why}", took, ())
    return Launched(True, (printed,), "", took, ())


class _Worker:
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
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid or 0, signal.SIGKILL)
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


def _watch(ranks: list[_Worker], seconds: float) -> bool:
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


def _end(ranks: list[_Worker]) -> None:
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


def _meeting_point() -> tuple[Any, int]:
    """Return a store that listens at 127.0.0.1 only, and its port: by itself TCPStore would listen everywhere."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined, unused-ignore]

    door = socket.create_server(("127.0.0.1", 0))
    port = door.getsockname()[1]
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()  # said at once, not after a store's patience
        door.accept()[0].close()
    except OSError:
        door.close()
        raise
    store = TCPStore(
        "127.0.0.1",
        port,
        is_master=True,
        wait_for_workers=False,
        timeout=timedelta(seconds=30),
        master_listen_fd=door.detach(),
    )
    return store, port


def _settings(rank: int, processes: int, port: int) -> dict[str, str]:
    """Return what torchrun would put into the environment."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the starter keeps the meeting point, no rank opens one of its own
        "TORCHELASTIC_RESTART_COUNT": "0",
        "OMP_NUM_THREADS": "1",
        **_loopback(),
    }


def _loopback() -> dict[str, str]:
    """Name the loopback interface to gloo, which would take the host's address; nothing where it has another name."""
    with suppress(OSError, AttributeError):
        names = {name for _, name in socket.if_nameindex()}
        return {"GLOO_SOCKET_IFNAME": next(name for name in ("lo", "lo0") if name in names)}
    return {}


def _family(pid: int) -> list[int]:
    """Return the process and all below it, as ``ps`` sees them."""
    rows = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    parents = {int(child): int(parent) for child, parent in map(str.split, rows.splitlines())}
    family = [pid]
    for member in family:
        family += [child for child, parent in parents.items() if parent == member]
    return family


def _checked(script: str | Path, processes: int, seconds: float) -> Path:
    """Return the script's full path, or raise for what cannot be started."""
    if not isinstance(script, (str, Path)):
        raise TypeError(f"launch: script must be the name of a file, got {script!r}")
    if isinstance(processes, bool) or not isinstance(processes, int) or not 1 <= processes <= _MOST:
        raise ValueError(f"launch: processes must be a whole number from 1 to {_MOST}, got {processes!r}")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < 3600:
        raise ValueError(f"launch: seconds must be a number between 0 and 3600, got {seconds!r}")
    path = Path(script).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"launch: there is no file {Path(script).name!r} here; run the cell that writes it")
    return path


def _first(error: BaseException) -> str:
    """Return the first line of what an error says."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def _pids(ranks: list[_Worker]) -> tuple[int, ...]:
    return tuple(worker.process.pid or 0 for worker in ranks)
