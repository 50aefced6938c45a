"""What the doctor can run: a script, a module, or a notebook, each as Python or Jupyter would run it."""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any


class NotRunnableError(Exception):
    """What was named cannot be run; the words say why."""


class EntryPoint:
    """A script or a module, which runs as the module ``__main__``.

    That module is in place again when the process ends: what runs at exit, such as a model that is saved then, finds
    its classes there.
    """

    tells_errors = False
    """Whether it prints the traceback of an error itself."""

    def __init__(self, path: Path, code: CodeType | None = None, **names: Any) -> None:
        """Take the code and the names of a module; a script is compiled when it runs, and found by its path."""
        self._given, self.path = path, path.absolute()
        self._code, self._names = code, names

    def run(self, arguments: Sequence[str]) -> None:
        """Run it; raises what it raises."""
        code = self._code or compile(self.path.read_bytes(), str(self.path), "exec")
        folder = os.getcwd() if self._code else os.fspath(self.path.resolve().parent)
        main = ModuleType("__main__")
        vars(main).update(__file__=str(self.path), __builtins__=__builtins__, **self._names)
        before = sys.modules["__main__"]
        sys.modules["__main__"] = main
        sys.argv[:], sys.path[0] = [str(self._given), *arguments], folder
        try:
            exec(code, vars(main))
        finally:
            sys.modules["__main__"] = before  # a process that is started from here looks for its code there
            atexit.register(sys.modules.__setitem__, "__main__", main)  # runs before what the code has registered

    def name_of(self, file: str) -> str:
        """Return what to call a file in the report."""
        return file


def find_entry_point(name: str, *, module: bool = False) -> EntryPoint:
    """Return the program of a path (``train.py``, ``lesson.ipynb``), or of a module's name (``package.train``).

    Raises NotRunnableError for what is not there.
    """
    if module:
        return _find_module(name)
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
    return _Notebook(path) if path.suffix == ".ipynb" else EntryPoint(path)


def _find_module(name: str) -> EntryPoint:
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
    return EntryPoint(Path(spec.origin), code, __spec__=spec, __package__=spec.parent, __loader__=loader)


class _Notebook(EntryPoint):
    """Runs the cells in IPython, which knows their magics; an error ends the run, as *Run all* does."""

    tells_errors = True

    def __init__(self, path: Path) -> None:
        super().__init__(path)
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
        cell = re.match(r"<ipython-input-(\d+)-", file)  # so IPython calls it; the number is the execution count
        return f"{self.path}, cell {cell[1]}" if cell else file

    def run(self, arguments: Sequence[str]) -> None:
        from IPython.core.interactiveshell import InteractiveShell

        sys.argv[:], sys.path[0] = [str(self.path), *arguments], os.fspath(self.path.resolve().parent)
        shell: Any = InteractiveShell(colors="nocolor")
        shell.enable_gui = lambda gui=None: None  # there is no event loop here, and %matplotlib asks for one
        for shell.execution_count, source in enumerate(self._source, start=1):
            shell.run_cell(source, store_history=True).raise_error()
