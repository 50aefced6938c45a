"""A program for test_other_systems.py: gradlab where names, threads and processes of another system are missing.

``python other_system.py windows FOLDER`` has only the names and modules of Windows. ``python other_system.py tab
FOLDER`` has one thread and process, as Python in a browser tab (Pyodide), and a PyTorch without torch.distributed. The
standard library and other packages keep what they need: they are imported before names are removed. Processes started
by multiprocessing load this program again, so they are limited in the same way.
"""

from __future__ import annotations

import _thread
import errno
import faulthandler
import importlib
import multiprocessing
import multiprocessing.popen_fork
import multiprocessing.popen_spawn_posix
import multiprocessing.resource_tracker
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import threading
import types
import warnings
from pathlib import Path
from typing import Any, NoReturn

USED_BY_OTHERS = "IPython ipywidgets anywidget matplotlib.figure"
NOT_ON_WINDOWS = {
    os: "fork forkpty register_at_fork setsid getsid killpg setpgid getpgid getpgrp getuid geteuid getgid getegid "
    "uname sched_getaffinity sched_setaffinity getloadavg mkfifo nice chown sysconf wait WIFSIGNALED WTERMSIG WNOHANG",
    signal: "SIGUSR1 SIGUSR2 SIGALRM SIGHUP SIGQUIT SIGKILL SIGCHLD SIGSTOP SIGCONT SIGTSTP SIGPIPE setitimer "
    "getitimer ITIMER_REAL alarm pause pthread_kill pthread_sigmask sigwait siginterrupt",
    faulthandler: "register unregister",
}
NOT_IN_A_TAB = {
    os: "fork forkpty posix_spawn posix_spawnp killpg setsid getpgid setpgid sched_getaffinity",
    signal: "SIGALRM setitimer getitimer ITIMER_REAL alarm pause pthread_kill",
}
MODULES_NOT_ON_WINDOWS = "fcntl resource pwd grp termios tty pty syslog multiprocessing.forkserver"
MODULES_NOT_IN_A_TAB = (
    "fcntl resource termios _multiprocessing multiprocessing.connection multiprocessing.forkserver _posixsubprocess"
)


def remove(names: dict[Any, str], modules: str) -> None:
    """Remove names from modules, and make other modules fail to import."""
    for module, missing in names.items():
        for name in missing.split():
            vars(module).pop(name, None)  # macOS lacks some, too
    for name in modules.split():
        sys.modules[name] = None  # type: ignore[assignment]


def become_windows() -> None:
    """Remove what Windows lacks; an open() without an encoding in gradlab raises."""
    for name in (*USED_BY_OTHERS.split(), "torch._dynamo"):
        importlib.import_module(name)
    for module in (os, signal):  # other modules may look names up later, so they get a complete copy
        complete = types.ModuleType(module.__name__)
        vars(complete).update(vars(module))
        for user in list(sys.modules.values()):
            is_this_module = vars(user) is globals()
            if type(user) is types.ModuleType and not is_this_module and vars(user).get(module.__name__) is module:
                setattr(user, module.__name__, complete)
    remove(NOT_ON_WINDOWS, MODULES_NOT_ON_WINDOWS)
    multiprocessing.get_all_start_methods = lambda: ["spawn"]
    os.environ["PATH"] = ""
    warnings.filterwarnings("error", category=EncodingWarning, module="gradlab")


class _Finder:
    """A module finder that hides the compiler and removes the names that make torch import torch.distributed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "torch.distributed":
            for switch in ("_c10d_init", "_rpc_init", "_dist_autograd_init", "_faulty_agent_init"):
                vars(sys.modules["torch._C"]).pop(switch, None)
        if name in ("torch._dynamo", "torch._inductor"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _fail(error: Exception) -> Any:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail


def become_a_tab() -> None:
    """Remove what a browser tab lacks."""
    sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
    for name in ("torch", *USED_BY_OTHERS.split()):
        importlib.import_module(name)
    remove(NOT_IN_A_TAB, MODULES_NOT_IN_A_TAB)
    threading.Thread.start = _fail(RuntimeError("can't start new thread"))  # type: ignore[method-assign]
    _thread.start_new_thread = _fail(RuntimeError("can't start new thread"))
    no_process = _fail(OSError(errno.ENOTSUP, "emscripten does not support processes."))
    subprocess.Popen.__init__ = no_process  # type: ignore[method-assign]
    multiprocessing.process.BaseProcess.start = no_process  # type: ignore[method-assign]
    import torch

    torch.compile = _fail(RuntimeError("torch.compile is not supported on this platform"))
    torch.set_num_threads(1)
    sys.platform = "emscripten"
    for category in (UserWarning, RuntimeWarning):  # of locks and threads: a learner cannot act on them
        warnings.simplefilter("error", category)


(become_a_tab if "tab" in sys.argv else become_windows)()


def main(system: str, folder: Path) -> None:
    """Use the features that learners use, and print a line for each."""
    import torch

    import gradlab
    from gradlab import Lab, course
    from gradlab.__main__ import main as command

    modules = [module.name for module in pkgutil.walk_packages(gradlab.__path__, "gradlab.")]
    for name in modules:
        if not name.endswith("__main__"):
            importlib.import_module(name)
    print("modules:", len(modules))
    lab = Lab("digits").run(updates=2)
    print("lab:", lab.save(folder / "lab.svg").name, lab.save(folder / "lab.png").name)
    loop = folder / "\N{GREEK SMALL LETTER OMEGA}.py"  # not in cp1252
    loop.write_text(LOOP, encoding="utf-8")
    print("doctor:", command(["doctor", str(loop)]))
    print("exercise:", bool(course.exercise("all_reduces").check(all_reduces)))
    (folder / "ranks.py").write_text(RANKS, encoding="utf-8")
    if system == "tab":
        print("distributed:", torch.distributed.is_available())
        use_without_threads(folder)
    else:
        print("forecast:", command(["forecast", "bowl", "--on", "10"]))
        run = course.launch(folder / "ranks.py", processes=2, seconds=100)
        print("ran:", ascii([run.printed, run.error]))
        left = [path.name for path in Path(tempfile.gettempdir()).iterdir()]
        left = [name for name in left if not name.startswith("torchinductor_")]  # PyTorch's cache, one for each user
        print("left:", multiprocessing.active_children(), left)


def use_without_threads(folder: Path) -> None:
    """Use features that need threads or processes on other systems."""
    import torch
    from page import Page

    from gradlab import Lab, Ledger, course, watch

    model = torch.nn.Linear(2, 1)
    with Ledger(model) as ledger:
        model(torch.ones(4, 2)).sum().backward()
    print("ledger:", ledger.by_category["weights"], ledger.by_category["gradients"])
    lab = Lab("digits")
    lab._repr_mimebundle_()  # what a cell shows: the widget and the still picture
    page = Page(lab).play(frames=4)
    print("alarm:", page.turn("zero_grad", False).play(frames=3).alarm)
    print("replay:", Lab("line").record(6, switches=["zero_grad"], marks=[3]).save(folder / "replay.html").name)
    with watch(updates=9) as report:
        exec(LOOP, {"torch": torch})
    print("watch:", *[finding.code for finding in report.findings])
    try:
        with watch(seconds=9):
            pass
    except ValueError as refused:
        print("seconds:", refused)
    course.prepare()
    print("launch:", course.launch(folder / "ranks.py"))


def all_reduces(batches: int, accumulate: int, buckets: int, no_sync: bool) -> int:
    """Answer the exercise."""
    return buckets * (-(-batches // accumulate) if no_sync else batches)


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
    main(sys.argv[1], Path(sys.argv[2]))
