"""Start a script in several processes that meet through torch.distributed, and say in words how they ended.

``launch`` is to a notebook what ``torchrun`` is to a terminal: it gives each process RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT, waits, and ends all of them when one fails or the time is over. Nothing of it can be reached from
another machine: the store is bound to 127.0.0.1 at a free port, and gloo is told to use the loopback alone.

Windows knows neither sessions nor process groups. There a process that has to be ended is ended alone, and programs
that the script itself has started keep running; and gloo listens where ``network_settings`` says.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from .meeting import local_store, network_settings
from .report import NO_NETWORK, LaunchResult, describe_failure
from .workers import Worker, stop_all, wait_all

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
    path = checked_script("launch", script, processes, seconds)
    try:
        store, port = local_store()
    except (OSError, RuntimeError) as failure:
        reason = (str(failure).splitlines() or [type(failure).__name__])[0].rstrip(".")
        return LaunchResult((), NO_NETWORK.format(reason))
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="gradlab-", ignore_cleanup_errors=True) as folder:
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
        **network_settings(),
    }


def checked_script(name: str, script: str | Path, processes: int, seconds: float) -> Path:
    """Return the script's full path, or raise for what cannot be started."""
    if not isinstance(script, (str, Path)):
        raise TypeError(f"{name}: script must be the name of a file, got {script!r}")
    if isinstance(processes, bool) or not isinstance(processes, int) or not 1 <= processes <= _MOST:
        raise ValueError(f"{name}: processes must be a whole number from 1 to {_MOST}, got {processes!r}")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < 3600:
        raise ValueError(f"{name}: seconds must be a number between 0 and 3600, got {seconds!r}")
    path = Path(script).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"{name}: there is no file {Path(script).name!r} here; run the cell that writes it")
    return path
