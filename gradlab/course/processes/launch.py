"""Start a script in several processes that meet through torch.distributed, and say in words how they ended.

``launch`` is to a notebook what ``torchrun`` is to a terminal: it gives each process RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT, waits, and ends all of them when one fails or the time is over. Nothing of it can be reached from
another machine: the store is bound to 127.0.0.1 at a free port, and gloo is told to use the loopback alone.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from .report import NO_NETWORK, LaunchResult, describe_failure
from .workers import Worker, stop_all, wait_all

if TYPE_CHECKING:
    from torch.distributed import TCPStore  # type: ignore[attr-defined, unused-ignore]

_MOST = 8


def launch(
    script: str | Path, processes: int = 2, seconds: float = 30.0, settings: Mapping[str, str] | None = None
) -> LaunchResult:
    """Run a script in several processes at once and return what each printed, or in words what went wrong.

    script: a file with plain PyTorch; each process runs all of it, in the file's folder.
    seconds: how long it may take, counted from when all have begun; after that they are ended.
    settings: further environment variables.

    Raises TypeError, ValueError or FileNotFoundError for what cannot be started; whatever the processes do (raise,
    hang, get killed, fail to meet) is in the result. No process is left behind.
    """
    path = _checked(script, processes, seconds)
    try:
        store, port = local_store()
    except (OSError, RuntimeError) as failure:
        reason = (str(failure).splitlines() or [type(failure).__name__])[0].rstrip(".")
        return LaunchResult((), NO_NETWORK.format(reason))
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="gradlab-") as folder:
        workers: list[Worker] = []
        try:
            for rank in range(processes):
                place = _environment(rank, processes, port) | dict(settings or {})
                workers.append(Worker(path, Path(folder, str(rank)), place))
            late = wait_all(workers, seconds)
        finally:  # also when the learner interrupts
            stop_all(workers)
        del store
        error = describe_failure([worker.exit() for worker in workers], path, seconds if late else None)
        printed = tuple(worker.read("printed") for worker in workers)
    return LaunchResult(printed, error, time.perf_counter() - began, tuple(w.process.pid or 0 for w in workers))


def torchrun(script: str | Path, processes: int = 2, seconds: float = 60.0) -> LaunchResult:
    """Run a script under PyTorch's own starter, ``python -m torch.distributed.run``, in a process of its own."""
    path = _checked(script, processes, seconds)
    result, port_was_taken = _torchrun_once(path, processes, seconds)
    if port_was_taken:
        result, _ = _torchrun_once(path, processes, seconds)
    return result


def _torchrun_once(path: Path, processes: int, seconds: float) -> tuple[LaunchResult, bool]:
    """Run it; say also whether another program took the port that torchrun had found free, before its workers did."""
    began, error = time.perf_counter(), ""
    starter = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", path.name],
        cwd=path.parent,
        env={**os.environ, "OMP_NUM_THREADS": "1", **gloo_loopback_env()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, errors = starter.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        words = f"torchrun was not done after {seconds:g} seconds, and was ended."
        return LaunchResult((), words, time.perf_counter() - began), False
    finally:  # also when the learner interrupts
        if starter.poll() is None:
            starter.terminate()  # it ends its workers, and kills those that do not listen
            starter.communicate()
    if starter.returncode:
        raised = re.findall(r"^(?:\[rank\d+\]: ?)?[\w.]*(?:Error|Exception)\b.*", errors, re.M)
        killed = re.findall(r"\bSIG[A-Z]+\b", errors)
        why = (raised or killed or [f"exit code {starter.returncode}"])[0]
        error = f"torchrun ended with an error: {why}"
    return LaunchResult((printed,), error, time.perf_counter() - began), bool(error) and "EADDRINUSE" in errors


def local_store() -> tuple[TCPStore, int]:
    """Return a store that listens at 127.0.0.1 only, and its port: by itself TCPStore would listen everywhere."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined, unused-ignore]

    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()  # fails at once; a store would try for long
        server.accept()[0].close()
    except OSError:
        server.close()
        raise
    store = TCPStore(
        "127.0.0.1",
        port,
        is_master=True,
        wait_for_workers=False,
        timeout=timedelta(seconds=30),
        master_listen_fd=server.detach(),
    )
    return store, port


def _environment(rank: int, processes: int, port: int) -> dict[str, str]:
    """Return what torchrun would put into the environment."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the starter keeps the store, no rank opens one of its own
        "TORCHELASTIC_RESTART_COUNT": "0",
        "OMP_NUM_THREADS": "1",
        **gloo_loopback_env(),
    }


def gloo_loopback_env() -> dict[str, str]:
    """Name the loopback interface to gloo, which would take the host's address; nothing where it has another name."""
    with suppress(OSError, AttributeError):
        names = {name for _, name in socket.if_nameindex()}
        return {"GLOO_SOCKET_IFNAME": next(name for name in ("lo", "lo0") if name in names)}
    return {}


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
