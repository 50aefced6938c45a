"""A program for test_other_systems.py: gradlab where there is one thread, no other process, and no timer's signal.

That is a tab of a browser, with Python as WebAssembly (Pyodide). PyTorch is loaded here without torch.distributed, by
the switch that its own builds without it have. Then threads and processes are made to fail as they do there, and what
Python for Emscripten lacks is taken away. The standard library's modules and PyTorch's are loaded before, and keep
what they hold; gradlab is loaded after.
"""

from __future__ import annotations

import _thread
import errno
import importlib
import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import torch

NAMES = {
    os: "fork forkpty posix_spawn posix_spawnp killpg setsid getpgid setpgid sched_getaffinity",
    signal: "SIGALRM setitimer getitimer ITIMER_REAL alarm pause pthread_kill",
}
MODULES = (
    "fcntl resource termios _multiprocessing multiprocessing.connection multiprocessing.forkserver _posixsubprocess"
)
COMPILER = ("torch._dynamo", "torch._inductor")


class _Finder:
    """A finder of modules that finds no compiler, and takes from PyTorch what makes it import its distributed part."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "torch.distributed":
            for switch in ("_c10d_init", "_rpc_init", "_dist_autograd_init", "_faulty_agent_init"):
                vars(sys.modules["torch._C"]).pop(switch, None)
        if name in COMPILER:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def become_a_tab() -> None:
    """Take away what a browser's tab lacks."""
    sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
    for name in ("torch", "IPython", "ipywidgets", "anywidget", "matplotlib.figure"):
        importlib.import_module(name)
    for module, names in NAMES.items():
        for name in names.split():
            vars(module).pop(name, None)
    for name in MODULES.split():
        sys.modules[name] = None  # type: ignore[assignment]
    threading.Thread.start = _no_thread  # type: ignore[method-assign]
    _thread.start_new_thread = _no_thread  # type: ignore[assignment]
    subprocess.Popen.__init__ = _no_process  # type: ignore[method-assign]
    multiprocessing.process.BaseProcess.start = _no_process  # type: ignore[method-assign]
    import torch

    torch.compile = _no_compiler
    torch.set_num_threads(1)
    sys.platform = "emscripten"


def _no_thread(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("can't start new thread")


def _no_process(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOTSUP, "emscripten does not support processes.")


def _no_compiler(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("torch.compile is not supported on this platform")


become_a_tab()
for category in (UserWarning, RuntimeWarning):  # of locks and threads: a learner cannot act on them
    warnings.simplefilter("error", category)


def main(folder: Path) -> None:
    """Use what a learner uses, and print one line for each."""
    import torch
    from page import Page

    import gradlab
    from gradlab import Lab, Ledger, Recipe, Run, course, predict, tasks, watch
    from gradlab.__main__ import main as command
    from gradlab.front import FrontEnd

    print("distributed:", torch.distributed.is_available())

    modules = [found.name for found in pkgutil.walk_packages(gradlab.__path__, "gradlab.")]
    for name in modules:
        if not name.endswith("__main__"):
            importlib.import_module(name)
    print("modules:", len(modules))

    model = torch.nn.Linear(2, 1)
    with Ledger() as ledger:
        model(torch.ones(4, 2)).sum().backward()
    print("ledger:", ledger.by_category["weights"], ledger.by_category["gradients"])

    run = Run(tasks.digits(), Recipe(zero_grad=False))
    run.advance(updates=3)
    print("run:", run.updates, "updates")

    lab = Lab("digits")
    lab._repr_mimebundle_()  # what a cell shows: the widget and the still picture
    page = Page(lab).play(frames=4)
    page.turn("zero_grad", False).play(frames=3)
    print("lab:", page.alarm)
    told: list[Any] = []
    front = FrontEnd("lab", lab.handle, lab.newest)
    front.send = lambda content, buffers=None: told.append((content, buffers))
    front._handle_custom_msg({"do": "frames", "n": 9, "client": "page", "count": 2, "every": 17, "updates": 1}, [])
    print("message:", len(told[0][0]["frames"]), "frames,", told[0][1])
    print("still:", lab.save(folder / "lab.png").name, lab.save(folder / "lab.svg").name)
    replay = Lab("line").record(6, switches=["zero_grad"], marks=[3]).save(folder / "replay.html")
    print("replay:", replay.name)
    compared = gradlab.compare(tasks.line(), {"a": Recipe(), "b": Recipe(zero_grad=False)}, updates=4)
    print("compare:", len(compared.rows), "rows")

    for name in ("swing", "loss_scale", "peak", "ring_of_orders", "two_ranks"):
        seen = Page(getattr(course, name)())
        print(f"{name}:", seen.alarm or seen.state)

    with watch(updates=9) as report:
        train(model)
    print("watch:", *[finding.code for finding in report.findings])
    try:
        with watch(seconds=9):
            train(model)
    except ValueError as refused:
        print("seconds:", refused)
    loop = folder / "loop.py"
    loop.write_text(LOOP, encoding="utf-8")
    print("doctor:", command(["doctor", str(loop)]))

    bet = predict("03/where-do-the-weights-go")
    bet.choose(bet.options[0])
    print("exercise:", bool(course.exercise("rank_samples").check(rank_samples)))

    (folder / "ranks.py").write_text("print(1)", encoding="utf-8")
    course.prepare()
    for start in (course.launch, course.torchrun):
        print(f"{start.__name__}:", start(folder / "ranks.py"))


def train(model: torch.nn.Module) -> None:
    """Train with a loop that forgets to clear."""
    import torch

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.ones(4, 2)).sum().backward()
        optimizer.step()


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

if __name__ == "__main__":
    main(Path(sys.argv[1]))
