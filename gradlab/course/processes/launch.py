"""A launcher that runs a script in several processes connected by torch.distributed, and reports how they ended.

``launch`` is a ``torchrun`` for notebooks: it sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for each process,
waits, and ends all processes when one fails or time runs out. Other machines cannot connect: the TCPStore listens only
on 127.0.0.1 and, except on Windows, gloo uses only the loopback interface.
"""

from __future__ import annotations

import atexit
import linecache
import os
import re
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .workers import Worker, stop_all, wait_all

if TYPE_CHECKING:
    from torch.distributed import TCPStore  # type: ignore[attr-defined, unused-ignore]

_MAX_PROCESSES = 8
_MAX_CHARS = 200
_LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo"}
# On Windows, gloo cannot select an interface by name, and listens on the address of the host name.
_NETWORK = {"USE_LIBUV": "0"} if sys.platform == "win32" else _LOOPBACK
_NO_PROCESSES = (
    "Processes cannot be started here: {}. What follows needs them; read on with the stored pictures, or run this "
    "notebook with Python on a computer."
)
_NO_NETWORK = (
    "The processes could not meet. They talk over this machine's own network (127.0.0.1), which is not available "
    "here: {}. What follows needs it; read on with the stored pictures."
)


@dataclass(frozen=True)
class LaunchResult:
    """The result of ``launch``, which a notebook displays as the processes' output. It is truthy if nothing failed."""

    printed: tuple[str, ...]
    """The standard output of each rank."""
    error: str
    """A description of all failures; "" if there were none."""
    pids: tuple[int, ...] = ()
    """The process ID of each rank."""

    def __bool__(self) -> bool:
        return not self.error

    def lines(self, rank: int) -> list[str]:
        """Return the lines that ``rank`` printed, followed by the lines of ``error``, if any."""
        text = self.printed[rank] if rank < len(self.printed) else ""
        return [*text.splitlines(), *self.error.splitlines()]

    def __repr__(self) -> str:
        name = "rank {} | " if len(self.printed) > 1 else ""
        lines = [name.format(rank) + line for rank, text in enumerate(self.printed) for line in text.splitlines()]
        shown = "\n".join([*lines, *self.error.splitlines()])
        return shown or "All processes ended without an error and printed nothing."


def launch(
    script: str | Path, processes: int = 2, seconds: float = 30.0, settings: Mapping[str, str] | None = None
) -> LaunchResult:
    """Run a script in several processes at once, and return their output and a description of any failures.

    Args:
        script: A Python file; each process runs the whole file, in the file's folder.
        processes: Number of processes, 1 to 8.
        seconds: Time limit, counted from when all scripts have started; processes that still run after it are ended.
        settings: Additional environment variables for the processes.

    Returns:
        A LaunchResult with the output and a description of any failures. No process is left running.

    Raises:
        ValueError, FileNotFoundError: ``processes`` is invalid, or ``script`` is not a file, respectively.
    """
    if isinstance(processes, bool) or not isinstance(processes, int) or not 1 <= processes <= _MAX_PROCESSES:
        raise ValueError(f"launch: processes must be a whole number from 1 to {_MAX_PROCESSES}, got {processes!r}")
    path = Path(script).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"launch: there is no file {Path(script).name!r} here; run the cell that writes it")
    if missing := _what_is_missing():
        return LaunchResult((), _NO_PROCESSES.format(missing))
    try:
        store, port = _local_store()
        environment = {
            "WORLD_SIZE": str(processes),
            "LOCAL_WORLD_SIZE": str(processes),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",  # the launching process, and not a rank, hosts the store
            "TORCHELASTIC_RESTART_COUNT": "0",
            "OMP_NUM_THREADS": "1",
            **_NETWORK,
            **(settings or {}),
        }
    except (OSError, RuntimeError) as failure:
        reason = (str(failure).splitlines() or [type(failure).__name__])[0].rstrip(".")
        return LaunchResult((), _NO_NETWORK.format(reason))
    workers: list[Worker] = []
    with tempfile.TemporaryDirectory(prefix="gradlab-", ignore_cleanup_errors=True) as folder:
        try:
            for rank in range(processes):
                ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
                workers.append(Worker(path, Path(folder, str(rank)), {**ranks, **environment}))
            late = wait_all(workers, seconds)
        finally:  # after an interrupt, too
            stop_all(workers)
        del store
        error = _failure_text(workers, path, seconds if late else None)
        printed = tuple(worker.read("printed") for worker in workers)
    return LaunchResult(printed, error, tuple(worker.process.pid or 0 for worker in workers))


def _what_is_missing() -> str:
    if sys.platform in ("emscripten", "wasi"):
        return "this Python runs in a browser tab or in another environment with a single process"
    import torch

    return "" if torch.distributed.is_available() else "this PyTorch is built without torch.distributed"


def _local_store() -> tuple[TCPStore, int]:
    """Return a TCPStore that listens only on 127.0.0.1 (by default, it would listen on all addresses), and its port."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined, unused-ignore]

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=2).close()  # this fails at once; TCPStore would retry
        server.accept()[0].close()
        options: dict[str, Any] = {"is_master": True, "wait_for_workers": False, "timeout": timedelta(seconds=30)}
        options["use_libuv"] = False  # PyTorch for Windows is built without libuv
        return TCPStore("127.0.0.1", port, master_listen_fd=server.detach(), **options), port


def _failure_text(workers: list[Worker], script: Path, seconds: float | None) -> str:
    """Return a description of the failures, the cause first, or ""; ``seconds`` is None unless time ran out."""
    bad = [rank for rank, worker in enumerate(workers) if worker.failed]
    if not bad:
        return ""
    linecache.checkcache(str(script))
    lines = []
    if seconds is not None:
        unit = "second" if seconds == 1 else "seconds"
        lines.append(f"Not done after {seconds:g} {unit}: the processes that were still running have been ended.")
    # Ranks that died without reporting an error come first, then ranks by the time of their error, then killed ranks.
    bad.sort(key=lambda rank: float("inf") if workers[rank].killed else workers[rank].reports.get("when", 0.0))
    for rank in bad:
        lines.append(f"rank {rank} {_end_text(workers[rank], caused=rank == bad[0] and seconds is None)}")
        if number := workers[rank].reports.get("at" if workers[rank].killed else "line"):
            lines.append(f"    at line {number} of {script.name}: {linecache.getline(str(script), number).strip()}")
    return "\n".join([*lines, "No process is left."])


def _end_text(worker: Worker, *, caused: bool) -> str:
    if worker.killed:
        return "had not finished"
    code, error, message = worker.process.exitcode or 0, worker.reports.get("error"), worker.reports.get("words", "")
    if error == "SystemExit":
        return f"exited with code {message}"
    if error and not caused and re.search("(?i:connection|peer|timed out|socket)", message):
        return f"lost its partner: {error}"
    if error:
        return f"failed: {error}: {message if len(message) < _MAX_CHARS else message[: _MAX_CHARS - 3] + '...'}"
    end = f"exited with code {code}"
    if code < 0:
        name = next((each.name for each in signal.Signals if each == -code), f"signal {-code}")
        end = f"was killed: {name}{', as the system does when memory runs out' * (name == 'SIGKILL')}"
    last = " ".join(worker.read("errors")[-_MAX_CHARS:].split())
    return end + f"\n    its last output on stderr: {last}" * bool(last)


def work_in_temporary_folder() -> None:
    """Change to a new temporary folder, which is removed when this Python process ends."""
    folder, before = tempfile.TemporaryDirectory(prefix="gradlab-", ignore_cleanup_errors=True), Path.cwd()

    def leave() -> None:
        with suppress(OSError):  # the earlier folder may have been removed
            os.chdir(before)  # Windows cannot remove the working directory
        folder.cleanup()

    os.chdir(folder.name)
    atexit.register(leave)
