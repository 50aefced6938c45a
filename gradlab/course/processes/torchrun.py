"""Start a script under PyTorch's own starter, as a terminal would, and say in words how it ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from .launch import checked_script
from .meeting import network_settings
from .report import LaunchResult

_RAISED = re.compile(r"^(?:\[rank\d+\]: ?)?([\w.]*(?:Error|Exception)\b.*)", re.M)
_CAUSE = re.compile(r"rank +: (\d+).*\s+exitcode +: (-?\d+) \(pid: \d+\)")
# What is over when the script is run again. Another program took the port that torchrun had found free. Or a thread of
# gloo, which lives on after the script, freed what a backward() had left with it while Python was ending already: then
# C++ says the second of these (github.com/pytorch/pytorch/pull/179291). On a busy machine one start in a hundred.
_PASSING = ("EADDRINUSE", "terminate called without an active exception")
_GRACE = 45.0  # seconds for torchrun to end its workers: it gives them 30, then kills them
# Windows ends a process that is told to terminate at once, and its workers would stay; a break reaches all of a group.
_GROUP = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
_STOP = getattr(signal, "CTRL_BREAK_EVENT", signal.SIGTERM)


def torchrun(script: str | Path, processes: int = 2, seconds: float = 90.0) -> LaunchResult:
    """Run a script under PyTorch's own starter, ``python -m torch.distributed.run``, in a process of its own.

    seconds: how long it may take, with the time in which it and each process load torch: a minute on a busy machine.

    Its meeting point accepts connections from other machines as long as it runs: no option of torchrun changes that.
    """
    path = checked_script("torchrun", script, processes, seconds)
    result, passing = _torchrun_once(path, processes, seconds)
    if passing:
        result, _ = _torchrun_once(path, processes, seconds)
    return result


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
    starter = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", path.name],
        cwd=path.parent,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONIOENCODING": "utf-8",
            **network_settings(),
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder),  # torchrun leaves a folder at every start
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
        creationflags=_GROUP,
    )
    try:
        printed, errors = starter.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, "", ""
    finally:  # also when the learner interrupts
        if starter.poll() is None:
            starter.send_signal(_STOP)  # it ends its workers, and kills those that do not listen
            _end(starter)
    return starter.returncode, printed, errors


def _end(starter: subprocess.Popen[str]) -> None:
    try:
        starter.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        starter.kill()
        with suppress(subprocess.TimeoutExpired):  # a worker that lives on holds the other ends of the pipes
            starter.communicate(timeout=5)


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
