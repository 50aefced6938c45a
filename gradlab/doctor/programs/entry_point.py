"""What the doctor can run: a script, a module, or a notebook, each as Python or Jupyter would run it; and torchrun."""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Protocol

from .child_reports import read_reports
from .child_run import WatchLimits


class EntryPoint(Protocol):
    """Something that can be run."""

    path: Path
    """Its file."""
    tells_errors: bool
    """Whether it prints the traceback of an error itself."""

    def run(self, arguments: Sequence[str]) -> None:
        """Run it; raises what it raises."""

    def name_of(self, file: str) -> str:
        """Return what to call a file in the report: the name of a notebook's cell says nothing to its author."""


class NotRunnableError(Exception):
    """What was named cannot be run; the words say why."""


def find_entry_point(name: str, *, module: bool = False) -> EntryPoint:
    """Return the program of a path (``train.py``, ``lesson.ipynb``), or of a module's name (``package.train``).

    Raises NotRunnableError for what is not there.
    """
    if module:
        return _Module(name)
    path = Path(name)
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no such file"
        if shutil.which(name):  # such as: accelerate launch
            raise NotRunnableError(
                f"{name}: not a Python script; a program that starts others can start the doctor: give it the module "
                "gradlab in the place of the script (-m gradlab doctor train.py)"
            )
        raise NotRunnableError(
            f"{name}: {what}; give the path of a Python script or a notebook, or -m and a module's name"
        )
    return _Notebook(path) if path.suffix == ".ipynb" else _Script(path)


class _Main:
    """Runs code as the module ``__main__``.

    That module is in place again when the process ends: what runs at exit, such as a model that is saved then, finds
    its classes there.
    """

    tells_errors = False

    def __init__(self, path: Path, given: str) -> None:
        self.path, self._given, self._started_in = path, given, Path.cwd()

    def name_of(self, file: str) -> str:
        """Return the path from the folder that the doctor was started in, if the file is in there."""
        path = Path(file)
        return str(path.relative_to(self._started_in)) if path.is_relative_to(self._started_in) else file

    def _run(self, code: CodeType, arguments: Sequence[str], folder: str, **names: Any) -> None:
        main = ModuleType("__main__")
        vars(main).update(__file__=str(self.path), __builtins__=__builtins__, **names)
        before = sys.modules["__main__"]
        sys.modules["__main__"] = main
        sys.argv[:], sys.path[0] = [self._given, *arguments], folder
        try:
            exec(code, vars(main))
        finally:
            sys.modules["__main__"] = before  # a process that is started from here looks for its code there
            atexit.register(sys.modules.__setitem__, "__main__", main)  # runs before what the code has registered


class _Script(_Main):
    def __init__(self, path: Path) -> None:
        super().__init__(path.absolute(), str(path))

    def run(self, arguments: Sequence[str]) -> None:
        code = compile(self.path.read_bytes(), str(self.path), "exec")
        self._run(code, arguments, os.fspath(self.path.resolve().parent))


class _Module(_Main):
    def __init__(self, name: str) -> None:
        sys.path.insert(0, os.getcwd())  # python -m looks there, too; the first place is replaced when it runs
        try:
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.submodule_search_locations is not None:
                name = f"{name}.__main__"
                spec = importlib.util.find_spec(name)
        except (ImportError, ValueError) as error:
            raise NotRunnableError(f"-m {name}: {error}") from None
        finally:
            del sys.path[0]
        loader: Any = spec.loader if spec is not None else None
        code = loader.get_code(name) if hasattr(loader, "get_code") else None
        if spec is None or spec.origin is None or code is None:
            raise NotRunnableError(f"-m {name}: there is no module of this name that can be run")
        super().__init__(Path(spec.origin), spec.origin)
        self._spec, self._code = spec, code

    def run(self, arguments: Sequence[str]) -> None:
        names = {"__spec__": self._spec, "__package__": self._spec.parent, "__loader__": self._spec.loader}
        self._run(self._code, arguments, os.getcwd(), **names)


class _Notebook:
    """Runs the cells in IPython, which knows their magics; an error ends the run, as *Run all* does."""

    tells_errors = True

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._cells: dict[str, int] = {}
        try:
            self._source = [
                "".join(cell["source"])
                for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
                if cell["cell_type"] == "code"
            ]
        except (ValueError, KeyError, TypeError):
            raise NotRunnableError(f"{path}: not a notebook that can be read") from None

    def name_of(self, file: str) -> str:
        """Return "lesson.ipynb, cell 3" for the file of its third code cell."""
        return f"{self.path.name}, cell {self._cells[file]}" if file in self._cells else file

    def run(self, arguments: Sequence[str]) -> None:
        sys.argv[:], sys.path[0] = [str(self.path), *arguments], os.fspath(self.path.resolve().parent)
        shell = _shell()
        for number, source in enumerate(self._source, start=1):
            known = set(_cached_cells())
            result = shell.run_cell(source, store_history=True)
            self._cells |= dict.fromkeys(set(_cached_cells()) - known, number)
            result.raise_error()


def _shell() -> Any:
    from IPython.core.interactiveshell import InteractiveShell

    class Shell(InteractiveShell):
        def enable_gui(self, gui: str | None = None) -> None:
            """Do nothing: there is no event loop here, and %matplotlib asks for one."""

    return Shell(colors="nocolor")


def _cached_cells() -> list[str]:
    import linecache

    return [name for name in linecache.cache if "ipython-input" in name or "ipykernel" in name]


LAUNCHER = "torch.distributed.run"
"""The module that torchrun is."""
_POLL = 0.05  # seconds
_FOR_OTHERS, _AT_THE_END = 60.0, 5.0  # seconds that rank 0 waits, when it has ended, for the reports of the others
_FOR_WORKERS = 40.0  # seconds that torchrun gets to end its workers; it itself gives them 30


def is_launcher(name: str, *, module: bool) -> bool:
    """Is this torchrun? Raises NotRunnableError for its predecessor, whose workers cannot be run as modules."""
    if module and name == "torch.distributed.launch":
        raise NotRunnableError("-m torch.distributed.launch is out of date; run: gradlab doctor torchrun ...")
    return name == LAUNCHER if module else Path(name).name == "torchrun"


def watched_command(arguments: Sequence[str], limits: WatchLimits) -> list[str]:
    """Return the command of torchrun in which each rank runs under the doctor.

    Raises NotRunnableError for arguments that torchrun does not take, or that leave no room for the doctor.
    """
    from torch.distributed.run import get_args_parser

    parser = get_args_parser()
    parser.prog, parser.usage = "torchrun", "gradlab doctor torchrun [options of torchrun] train.py ..."
    try:
        given = parser.parse_args([*arguments])
    except SystemExit as error:  # torchrun has said what is wrong
        raise NotRunnableError("torchrun does not take these arguments") from error
    if given.no_python or given.run_path:
        raise NotRunnableError("torchrun with --no-python or --run-path cannot be watched; leave that option out")
    own = [*arguments][: len(arguments) - len(given.training_script_args) - 1]
    doctor = ["-m", "gradlab", "doctor", "--report-to", str(limits.folder)]
    for option, limit in (("--updates", limits.updates), ("--seconds", limits.seconds)):
        doctor += [option, str(limit)] if limit is not None else []
    program = [*(["-m"] if given.module else []), given.training_script, *given.training_script_args]
    return [sys.executable, "-m", LAUNCHER, *own, *doctor, *program]


def run_torchrun(command: Sequence[str]) -> int:
    """Run it and return its exit code; when this process is to end, it is told to end, too, and waited for."""
    running = subprocess.Popen(command)
    try:
        return running.wait()
    except BaseException:
        running.terminate()
        try:
            running.wait(_FOR_WORKERS)
        except subprocess.TimeoutExpired:
            running.kill()
        raise


class LocalRanks:
    """The ranks on this machine, where torchrun runs the doctor: they meet in a folder, and the first reports."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        """Read from the environment what torchrun has said there."""
        self.rank = environment.get("RANK", "0")
        self.first = environment["LOCAL_RANK"] == "0"
        self.number = int(environment["LOCAL_WORLD_SIZE"])
        owner = os.getuid() if hasattr(os, "getuid") else 0
        run = f"{environment.get('MASTER_PORT', '')}-{environment.get('TORCHELASTIC_RESTART_COUNT', '')}"
        # All ranks have the same parent, the agent of torchrun.
        self.folder = Path(tempfile.gettempdir()) / f"gradlab-doctor-{owner}-{os.getppid()}-{run}"
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if hasattr(os, "getuid") and self.folder.stat().st_uid != owner:
            raise NotRunnableError(f"{self.folder} belongs to another user")

    def wait(self, *, patient: bool) -> None:
        """Wait until all have reported, not for long if they are to be ended from outside."""
        end = time.monotonic() + (_FOR_OTHERS if patient else _AT_THE_END)
        while len(read_reports(self.folder)[0]) < self.number and time.monotonic() < end:
            time.sleep(_POLL)


def started_by_torchrun(environment: Mapping[str, str] = os.environ) -> bool:
    """Is this process one rank of several?"""
    return "TORCHELASTIC_RUN_ID" in environment and int(environment.get("LOCAL_WORLD_SIZE", "1")) > 1
