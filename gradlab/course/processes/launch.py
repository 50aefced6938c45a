"""Start a script in several processes that meet through torch.distributed, by ourselves or by PyTorch's starter.

``launch`` is to a notebook what ``torchrun`` is to a terminal: it gives each process RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT, waits, and ends all of them when one fails or the time is over. Nothing of it can be reached from
another machine: the store is bound to 127.0.0.1 at a free port, and gloo is told to use the loopback alone.

Windows knows neither sessions nor process groups. There a process that has to be ended is ended alone, and programs
that the script itself has started keep running; and gloo listens where ``_network_settings`` says.
"""

from __future__ import annotations

import atexit
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._process import running_module
from .report import NO_FOLDER, NO_NETWORK, NO_PROCESSES, LaunchResult, describe_failure
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
    path = _checked_script("launch", script, processes, seconds)
    if missing := _what_is_missing():
        return LaunchResult((), NO_PROCESSES.format(missing))
    try:
        store, port = _local_store()
    except (OSError, RuntimeError) as failure:
        reason = (str(failure).splitlines() or [type(failure).__name__])[0].rstrip(".")
        return LaunchResult((), NO_NETWORK.format(reason))
    began = time.perf_counter()
    workers: list[Worker] = []
    try:
        with tempfile.TemporaryDirectory(prefix="gradlab-", ignore_cleanup_errors=True) as folder:
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
    except FileNotFoundError:
        return LaunchResult((), NO_FOLDER.format(tempfile.gettempdir()))
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
        **_network_settings(),
    }


def _checked_script(name: str, script: str | Path, processes: int, seconds: float) -> Path:
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


def _what_is_missing() -> str:
    """Say why no processes can be started on this system, "" where they can."""
    if sys.platform in ("emscripten", "wasi"):
        return "this Python runs in a browser's tab or in another place with one process"
    import torch

    return "" if torch.distributed.is_available() else "this PyTorch is built without torch.distributed"


def _local_store() -> tuple[TCPStore, int]:
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
        use_libuv=False,  # PyTorch for Windows is built without libuv
    )
    return store, port


def _network_settings() -> dict[str, str]:
    """Return what keeps gloo on the loopback, by the interface's name, and lets the store work on Windows.

    gloo for Windows knows no names of interfaces: there it listens at the address that the host's name has.
    """
    if sys.platform == "win32":
        return {"USE_LIBUV": "0"}
    names: set[str] = set()
    with suppress(OSError):
        names = {name for _, name in socket.if_nameindex()} & {"lo", "lo0"}
    return {"GLOO_SOCKET_IFNAME": names.pop()} if names else {}


_RAISED = re.compile(r"^(?:\[rank\d+\]: ?)?([\w.]*(?:Error|Exception)\b.*)", re.M)
_CAUSE = re.compile(r"rank +: (\d+).*\s+exitcode +: (-?\d+) \(pid: \d+\)")
# What is over when the script is run again. Another program took the port that torchrun had found free. Or a thread of
# gloo, which lives on after the script, freed what a backward() had left with it while Python was ending already: then
# C++ says the second of these (github.com/pytorch/pytorch/pull/179291). On a busy machine one start in a hundred.
_PASSING = ("EADDRINUSE", "terminate called without an active exception")


def torchrun(script: str | Path, processes: int = 2, seconds: float = 90.0) -> LaunchResult:
    """Run a script under PyTorch's own starter, ``python -m torch.distributed.run``, in a process of its own.

    seconds: how long it may take, with the time in which it and each process load torch: a minute on a busy machine.

    Its meeting point accepts connections from other machines as long as it runs: no option of torchrun changes that.
    """
    path = _checked_script("torchrun", script, processes, seconds)
    if missing := _what_is_missing():
        return LaunchResult((), NO_PROCESSES.format(missing))
    try:
        result, passing = _torchrun_once(path, processes, seconds)
        return _torchrun_once(path, processes, seconds)[0] if passing else result
    except FileNotFoundError:
        return LaunchResult((), NO_FOLDER.format(tempfile.gettempdir()))


def _torchrun_once(path: Path, processes: int, seconds: float) -> tuple[LaunchResult, bool]:
    """Run it; say also whether it failed for a reason that will have passed when it is run again."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="gradlab-", ignore_cleanup_errors=True) as folder:
        code, printed, errors = _output(path, processes, seconds, folder)
    passed = time.perf_counter() - began
    if code is None:
        return LaunchResult((), f"torchrun was not done after {seconds:g} seconds, and was ended.", passed), False
    error = f"torchrun ended with an error: {_why(code, errors)}" if code else ""
    return LaunchResult((printed,), error, passed), bool(error) and any(words in errors for words in _PASSING)


def _output(path: Path, processes: int, seconds: float, folder: str) -> tuple[int | None, str, str]:
    """Return its exit code, or None if it was late, and what it wrote to its two outputs; its logs go to the folder."""
    options: dict[str, Any] = {
        "cwd": path.parent,
        "env": {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONIOENCODING": "utf-8",
            **_network_settings(),
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder),  # torchrun leaves a folder at every start
        },
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "encoding": "utf-8",
        "errors": "replace",
        "start_new_session": True,
    }
    arguments = ["--standalone", f"--nproc-per-node={processes}", path.name]
    with running_module("torch.distributed.run", arguments, **options) as starter:
        try:
            printed, errors = starter.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None, "", ""
    return starter.returncode, printed, errors


def _why(code: int, errors: str) -> str:
    """Return the first error of a worker by its name; without one the rank that ended first, and how."""
    raised = [text for text in _RAISED.findall(errors) if "ChildFailedError" not in text]
    if raised:
        return str(raised[0])
    if cause := _CAUSE.search(errors.rpartition("Root Cause")[2]):
        rank, number = cause.groups()
        with suppress(ValueError):  # an exit code below 0 is minus a signal
            return f"rank {rank} was killed: {signal.Signals(-int(number)).name}"
        return f"rank {rank} left with exit code {number}"
    return f"exit code {code}"


def work_in_temporary_folder() -> None:
    """Make a folder and work in it until this Python ends, which removes it."""
    folder, before = tempfile.TemporaryDirectory(prefix="gradlab-", ignore_cleanup_errors=True), Path.cwd()

    def leave() -> None:
        with suppress(OSError):  # it may have been removed
            os.chdir(before)  # Windows keeps a folder that somebody works in
        folder.cleanup()

    os.chdir(folder.name)
    atexit.register(leave)
