"""Scripts for several processes, and whether their processes are gone."""

from __future__ import annotations

import os
import signal
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

MEET = 'import os, sys, time\nimport torch\nimport torch.distributed as dist\ndist.init_process_group("gloo")\n'
RANK = "rank, size = dist.get_rank(), dist.get_world_size()\n"


def script(folder: Path, text: str, meet: bool = True) -> Path:
    path = folder / "script.py"
    path.write_text((MEET + RANK if meet else "") + textwrap.dedent(text))
    return path


def hanging(folder: Path) -> Path:
    """A script that writes a file named pid-<number> and never ends; it needs no partner, and no torch."""
    return script(folder, "import os, time\nopen(f'pid-{os.getpid()}', 'w').close()\ntime.sleep(3600)", meet=False)


def pids_in(folder: Path) -> list[int]:
    return [int(path.name.removeprefix("pid-")) for path in folder.glob("pid-*")]


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not asked for its exit code yet does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone(pids: list[int], seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(alive, pids))


def interrupt_when_begun(start: Callable[[], object], folder: Path) -> None:
    """Press Ctrl-C in ``start`` when two processes of ``hanging(folder)`` run; none may be left."""

    def interrupt() -> None:
        until = time.monotonic() + 100
        while len(pids_in(folder)) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    try:
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            start()
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(pids_in(folder)) == 2
    assert gone(pids_in(folder))
