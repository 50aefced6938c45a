"""Start a script in several processes that meet through torch.distributed, and say in words what became of them.

``launch`` is to a notebook what ``torchrun`` is to a terminal: it gives each process RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT, waits, and ends all of them when one fails or the time is over. Nothing of it can be reached from
another machine: the meeting point is bound to 127.0.0.1 at a free port, and gloo is told to use the loopback alone.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from .aftermath import NO_NETWORK, Launched, aftermath
from .crew import Worker, end, watch
from .crew import prepare as prepare
from .meeting import environment, loopback, meeting_point

_MOST = 8


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
        store, port = meeting_point()
    except (OSError, RuntimeError) as error:
        return Launched.failed(NO_NETWORK.format(_first(error)))
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="gradlab-") as folder:
        ranks: list[Worker] = []
        try:
            for rank in range(processes):
                told = environment(rank, processes, port) | dict(settings or {})
                ranks.append(Worker(path, Path(folder), rank, told))
            late = watch(ranks, seconds)
        finally:  # also when the learner interrupts
            end(ranks)
        del store
        fate = aftermath([worker.rank() for worker in ranks], path, seconds if late else None)
        pids = tuple(worker.process.pid or 0 for worker in ranks)
    return Launched(fate == "", tuple(worker.printed for worker in ranks), fate, time.perf_counter() - began, pids)


def torchrun(script: str | Path, processes: int = 2, seconds: float = 60.0) -> Launched:
    """Run a script under PyTorch's own starter, ``python -m torch.distributed.run``, in a process of its own."""
    path = _checked(script, processes, seconds)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    began, late = time.perf_counter(), False
    started = subprocess.Popen(
        [*command, path.name],
        cwd=path.parent,
        env={**os.environ, "OMP_NUM_THREADS": "1", **loopback()},
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
