"""What runs inside a process that ``gradlab.processes`` has started: it gets its place among the others, then a script.

Nothing of the training is here. A worker is its own session, so that it can be ended with all that it starts, and it
ends itself when the process that started it is gone.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import runpy
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


def work(script: str, settings: dict[str, str], output: str, errors: str, line: Connection) -> None:
    """Run a script as ``python script`` would, and tell on ``line`` when it begins and what it raises.

    settings: environment variables (RANK, WORLD_SIZE, ...). output, errors: files for what is printed and for stderr.
    """
    os.setsid()
    threading.Thread(target=_end_with_the_starter, args=(line,), daemon=True).start()
    for number, name in ((1, output), (2, errors)):
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(handle, number)
        os.close(handle)
    sys.stdout, sys.stderr = (os.fdopen(os.dup(number), "w", buffering=1) for number in (1, 2))
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=False)  # asked where it stands, it says so
    os.environ.update(settings)
    os.chdir(Path(script).parent)
    sys.argv, sys.path[:0] = [script], [str(Path(script).parent)]
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))  # where torch was there before the variable
    line.send(("started", time.time()))
    try:
        runpy.run_path(script, run_name="__main__")
        atexit._run_exitfuncs()  # multiprocessing ends without them
    except SystemExit as left:
        if left.code not in (None, 0):
            line.send(("raised", _report(left, script)))
            _end(1)
    except BaseException as error:
        traceback.print_exc()
        line.send(("raised", _report(error, script)))
        _end(1)


def _end(code: int) -> None:
    """End at once: after an error a process group may wait for others in its clean-up."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _end_with_the_starter(line: Connection) -> None:
    """Wait for the other end to close, which it does when the starter has died, and end with all children."""
    try:
        line.recv()
    except (EOFError, OSError):
        os.killpg(0, signal.SIGKILL)


def _report(error: BaseException, script: str) -> dict[str, Any]:
    """Say what was raised, where in the script, when, and whether it was while the processes were to meet."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == script]
    return {
        "kind": type(error).__name__,
        "words": " ".join(str(error).split()),
        "line": lines[-1] if lines else None,
        "when": time.time(),
        "meeting": any(frame.name == "init_process_group" for frame in frames),
    }
