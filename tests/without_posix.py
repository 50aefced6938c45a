"""A program for test_other_systems.py: gradlab where only Windows' names and programs are there.

Names that Windows lacks are taken from ``os``, ``signal``, ``faulthandler`` and ``multiprocessing``, and modules that
it lacks cannot be imported. The standard library and others, which run here as on Linux, keep theirs: what they need is
loaded before, and those that look names up late are given a whole copy of the two modules. All this also happens in the
processes that multiprocessing starts, because each loads the program anew.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import multiprocessing.popen_fork
import multiprocessing.popen_spawn_posix
import multiprocessing.resource_tracker
import os
import signal
import sys
import tempfile
import types
import warnings
from pathlib import Path

NOT_ON_WINDOWS = {
    os: "fork forkpty register_at_fork setsid getsid killpg setpgid getpgid getpgrp getuid geteuid getgid getegid "
    "uname sched_getaffinity sched_setaffinity getloadavg mkfifo nice chown sysconf wait WIFSIGNALED WTERMSIG WNOHANG",
    signal: "SIGUSR1 SIGUSR2 SIGALRM SIGHUP SIGQUIT SIGKILL SIGCHLD SIGSTOP SIGCONT SIGTSTP SIGPIPE setitimer "
    "getitimer ITIMER_REAL alarm pause pthread_kill pthread_sigmask sigwait siginterrupt",
    faulthandler: "register unregister",
}
MODULES = "fcntl resource pwd grp termios tty pty syslog multiprocessing.forkserver"


def become_windows() -> None:
    """Take away what Windows lacks; an open() of gradlab that leaves the encoding to the system raises."""
    for name in (
        "IPython",
        "ipywidgets",
        "anywidget",
        "matplotlib.figure",
        "torch._dynamo",
    ):
        __import__(name)
    for stripped in (os, signal):
        whole = types.ModuleType(stripped.__name__)
        vars(whole).update(vars(stripped))
        for user in list(sys.modules.values()):
            mine = vars(user) is globals()
            if type(user) is types.ModuleType and not mine and vars(user).get(stripped.__name__) is stripped:
                setattr(user, stripped.__name__, whole)
    for module, names in NOT_ON_WINDOWS.items():
        for name in names.split():
            vars(module).pop(name, None)  # macOS lacks some, too
    for name in MODULES.split():
        sys.modules[name] = None  # type: ignore[assignment]
    multiprocessing.get_all_start_methods = lambda: ["spawn"]
    os.environ["PATH"] = ""
    warnings.filterwarnings("error", category=EncodingWarning, module="gradlab")


become_windows()


def main(folder: Path) -> None:
    """Use what a learner uses, and print one line for each."""
    import importlib
    import pkgutil

    import gradlab
    from gradlab.__main__ import main as command

    modules = [found.name for found in pkgutil.walk_packages(gradlab.__path__, "gradlab.")]
    for name in modules:
        if not name.endswith("__main__"):
            importlib.import_module(name)
    print("modules:", len(modules))

    lab = gradlab.Lab(panels=["loss"])
    lab.run(updates=2)
    print("lab:", lab.save(folder / "lab.svg").name, lab.save(folder / "lab.png").name)

    loop = folder / "\N{GREEK SMALL LETTER OMEGA}.py"  # not in cp1252
    loop.write_text(LOOP, encoding="utf-8")
    print("doctor:", command(["doctor", str(loop)]))
    print("forecast:", command(["forecast", "bowl", "--on", "10"]))

    from gradlab.course import exercise, launch

    print("exercise:", bool(exercise("rank_samples").check(rank_samples)))

    (folder / "ranks.py").write_text(RANKS, encoding="utf-8")
    run = launch(folder / "ranks.py", processes=2, seconds=100)
    print("ran:", ascii([run.printed, run.error]))
    left = [path.name for path in Path(tempfile.gettempdir()).iterdir()]
    left = [name for name in left if not name.startswith("torchinductor_")]  # PyTorch's cache, one for each user
    print("left:", run.still_running, left)


def rank_samples(samples: int, size: int, rank: int) -> list[int]:
    """Answer the exercise."""
    each = -(-samples // size)
    return [(rank + size * turn) % samples for turn in range(each)]


LOOP = """import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
"""
RANKS = """import time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
numbers = torch.ones(2) * (dist.get_rank() + 1)
dist.all_reduce(numbers)
print("\N{MULTIPLICATION SIGN} \N{RIGHTWARDS ARROW}", numbers.tolist())
if dist.get_rank() == 1:
    raise OSError("disk full")
time.sleep(3600)
"""

if __name__ == "__main__":
    main(Path(sys.argv[1]))
