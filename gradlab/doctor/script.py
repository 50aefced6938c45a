"""The doctor for a whole program: it runs the program as Python would, and writes one report for all processes."""

from __future__ import annotations

import atexit
import importlib.util
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from weakref import WeakSet

from .._process import running_module
from ..formatting import number_of
from .finding import Report
from .frames import strip_doctor_frames
from .processes import ChildRun, TerminatedError, read_report, sigterm_raises, write_report
from .reports import FindingFilter, ReportPrinter, write_stdout
from .watching import watch

CLEAN, FINDINGS, NOT_RUN = 0, 1, 2
"""Exit codes. NOT_RUN is also the code of a program that fails without a finding, or trains nothing to be judged."""
_TORCHRUN = "torch.distributed.run"  # the module that the command torchrun runs
_GRACE_SECONDS = 2.0  # time for processes that also received Ctrl-C to end by themselves
_REPORT_SECONDS = 10.0  # time for a process that is being terminated to write its report


def run_script(
    name: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    form: str = "text",
    output: str | None = None,
    wanted: FindingFilter | None = None,
    exit_zero: bool = False,
    updates: int | None = None,
    seconds: float | None = None,
    report_to: str | None = None,
) -> int:
    """Run a script, a notebook, a module or torchrun under watch, write the report, and return the exit code.

    ``form`` is one of FORMATS. The report goes to the file ``output`` or, by default, to standard output; in that case,
    all other output goes to standard error unless ``form`` is "text". The watch ends early after ``updates`` steps or
    ``seconds``. ``exit_zero`` makes the exit code 0 even if there are findings. A torchrun that the doctor started sets
    ``report_to``: the report goes to this file, nothing is printed, and the exit code is the program's.
    """
    printer = ReportPrinter(form, output, wanted or FindingFilter())
    limits = {"updates": updates, "seconds": seconds}
    atexit.register(write_stdout)  # runs after the program's exit handlers, so that Python's own flush cannot fail
    try:
        launches = name == _TORCHRUN if module else Path(name).name == "torchrun"
        program = None if launches else find_program(name, module=module)
        if program is not None and _rank():  # any rank except 0
            code = _run(program, arguments, nullcontext())
            return 1 if code is None else code
        temporary = tempfile.TemporaryDirectory(prefix="gradlab-doctor-", ignore_cleanup_errors=True)
        with temporary as folder, printer.keeping_stdout(), sigterm_raises():
            path = Path(folder, "report.json")
            if program is None:
                code, report = _run_torchrun(arguments, limits, path)
            else:
                watching = ProgramWatch(limits, path, None if report_to else printer.write)
                code, report = watching.run(program, arguments)
    except NotRunnableError as error:
        print(f"gradlab doctor: {error}", file=sys.stderr)
        return NOT_RUN
    if report_to:
        write_report(Path(report_to), report)
        return 1 if code is None else code
    if printer.write(report, f" The program ended with exit code {code}." if code else ""):
        return CLEAN if exit_zero else FINDINGS
    return NOT_RUN if code or not report.judged else CLEAN


class ProgramWatch(watch):
    """A watch of a program that reports on the first child process if the program itself trains nothing."""

    def __init__(self, limits: dict[str, Any], path: Path, on_enough: Callable[[Report], object] | None) -> None:
        """Set the limits of the watch, the file for the first child's report, and the callback for an early end."""
        super().__init__(**limits)
        self._limits, self._path, self._on_enough = limits, path, on_enough
        self._running: WeakSet[BaseProcess] = WeakSet()

    def _end_early(self) -> None:
        super()._end_early()
        if self._on_enough is not None:
            self._on_enough(self)

    def _follow(self, process: BaseProcess) -> None:
        self._running.add(process)
        path = self._path if self.processes == 1 else None
        leave = partial(self.__exit__, None, None, None)
        process.run = ChildRun(process, path, self._limits, leave)  # type: ignore[method-assign]  # pickled with it

    def run(self, program: EntryPoint, arguments: Sequence[str]) -> tuple[int | None, Report]:
        """Run a program. Return its exit code, or None if it was ended from outside, and the report."""
        code = _run(program, arguments, self)
        try:
            self._finish(ended=code is None)
        except (KeyboardInterrupt, TerminatedError):  # the program has ended, but its children have not
            code = None
            self._finish(ended=True)
        return code, self._report()

    def _finish(self, *, ended: bool) -> None:
        """Wait for the child processes and terminate the daemonic ones, as Python does at exit.

        If ``ended`` (the program was stopped from outside), terminate all of them after a grace period.
        """
        waiting = [process for process in multiprocessing.active_children() if process in self._running]
        end = time.monotonic() + _GRACE_SECONDS
        for process in waiting:
            if ended:
                with suppress(KeyboardInterrupt, TerminatedError):  # another Ctrl-C ends only this wait
                    process.join(max(0.0, end - time.monotonic()))
            if ended or process.daemon:
                process.terminate()
        for process in waiting:
            process.join(_REPORT_SECONDS if ended or process.daemon else None)

    def _report(self) -> Report:
        """Return the report of this process or, if it has trained nothing, of the first process that it started."""
        first, rank = None if self.trained else read_report(self._path), _rank()
        report, others = self.plain(), self.processes if self.trained else 0
        if first is not None:
            report, others = first, self.processes - 1
            report.watched = f"In the first process that it started: {report.watched}"
        if rank is not None:
            report.watched, others = f"In rank {rank}: {report.watched}", others + int(os.environ["WORLD_SIZE"]) - 1
        if others > 0:
            report.watched += f" The doctor did not watch {number_of(others, 'other process', 'es')}."
        return report


def _rank() -> int | None:
    """Return the rank of this process in a torchrun of several processes, or None if there is no such torchrun."""
    several = "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1
    return int(os.environ["RANK"]) if several else None


def _run_torchrun(arguments: Sequence[str], limits: dict[str, Any], path: Path) -> tuple[int | None, Report]:
    """Run torchrun with each rank under the doctor; return its exit code (None if interrupted) and rank 0's report."""
    code = None
    with (
        suppress(KeyboardInterrupt, TerminatedError),
        running_module(_TORCHRUN, watched_arguments(arguments, limits, path)) as torchrun,
    ):
        code = torchrun.wait()
    report = read_report(path)
    if report is None:
        note = "Rank 0 of torchrun wrote no report: it did not start training, or it runs on another machine."
        report = Report([], note, judged=False)
    return code, report


def watched_arguments(arguments: Sequence[str], limits: dict[str, Any], report: Path) -> list[str]:
    """Return arguments for torchrun that run each rank under the doctor and make rank 0 write ``report``.

    Raises NotRunnableError for arguments that torchrun does not accept.
    """
    from torch.distributed.run import get_args_parser

    parser = get_args_parser()
    parser.prog, parser.usage = "torchrun", "gradlab doctor torchrun [options of torchrun] train.py ..."
    try:
        parsed = parser.parse_args([*arguments])
    except SystemExit as error:  # torchrun has printed the reason
        raise NotRunnableError("torchrun does not accept these arguments") from error
    torchrun_arguments = [*arguments][: len(arguments) - len(parsed.training_script_args) - 1]
    options = [text for name, limit in limits.items() if limit is not None for text in (f"--{name}", str(limit))]
    program = [*(["-m"] if parsed.module else []), parsed.training_script, *parsed.training_script_args]
    # Without --log-dir, torchrun leaves an empty folder among the temporary files, even if it logs nothing.
    logged = parsed.log_dir or {parsed.redirects, parsed.tee} != {"0"}
    logs = [] if logged else ["--log-dir", str(report.parent / "logs")]
    return [*logs, *torchrun_arguments, "-m", "gradlab", "doctor", "--report-to", str(report), *options, *program]


def _run(program: EntryPoint, arguments: Sequence[str], block: AbstractContextManager[object]) -> int | None:
    """Run a program inside ``block``; return its exit code, or None if Ctrl-C, SIGTERM or a closed pipe ended it."""
    argv, path = [*sys.argv], [*sys.path]
    sys.argv[:], sys.path[0] = [program.name, *arguments], program.folder
    try:
        with block:
            program.run()
    except (KeyboardInterrupt, TerminatedError) as error:
        how = "ended by SIGTERM" if isinstance(error, TerminatedError) else "interrupted"
        print(f"gradlab doctor: the script was {how}", file=sys.stderr)
        return None
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        if isinstance(error, BrokenPipeError) and not write_stdout("\n"):
            return None  # the program did not fail: the reader of standard output is gone
        strip_doctor_frames(error)
        if not program.file.endswith(".ipynb"):  # IPython has already printed the traceback
            traceback.print_exception(error, file=sys.stderr)
        return 1
    finally:
        sys.argv[:], sys.path[:] = argv, path
    return 0


class NotRunnableError(Exception):
    """Raised for a program that cannot be run, with the reason as its message."""


@dataclass
class EntryPoint:
    """A script, a module or a notebook to run."""

    name: str
    """The program's ``sys.argv[0]``."""
    file: str
    folder: str
    """The first folder on the program's ``sys.path``."""
    run: Callable[[], None]
    """Runs the program, and does not catch its exceptions."""


def find_program(name: str, *, module: bool = False) -> EntryPoint:
    """Return the program at the path ``name`` or, if ``module`` is True, the module ``name`` (``package.train``).

    Raises NotRunnableError if there is no such script or runnable module, if ``name`` is a command such as
    ``accelerate``, or if a notebook cannot be read.
    """
    if module:
        return _find_module(name)
    path = Path(name)
    if path.is_file():
        file, folder = str(path.absolute()), str(path.resolve().parent)
        if path.suffix == ".ipynb":
            return EntryPoint(name, file, folder, partial(_run_cells, file, _cells(path)))
        return EntryPoint(name, file, folder, lambda: _run_main(compile(path.read_bytes(), file, "exec")))
    if shutil.which(name):  # another command, such as accelerate in `accelerate launch`
        raise NotRunnableError(
            f"{name}: not a Python script; if it starts Python scripts, give it "
            "`-m gradlab doctor train.py` in place of `train.py`"
        )
    what = "a folder" if path.is_dir() else "no such file"
    raise NotRunnableError(f"{name}: {what}; give a Python script, a notebook, or -m and the name of a module")


def _find_module(name: str) -> EntryPoint:
    sys.path.insert(0, folder := os.getcwd())  # as python -m does
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
        raise NotRunnableError(f"-m {name}: found no module with this name that can be run")
    names = {"__spec__": spec, "__package__": spec.parent, "__loader__": loader}
    return EntryPoint(spec.origin, spec.origin, folder, lambda: _run_main(code, **names))


def _run_main(code: CodeType, **names: Any) -> None:
    """Run code as a new module ``__main__``, which pickle finds in ``sys.modules`` during the run and at exit."""
    main = ModuleType("__main__")
    vars(main).update(__file__=code.co_filename, __builtins__=__builtins__, **names)
    before = sys.modules["__main__"]
    sys.modules["__main__"] = main
    try:
        exec(code, vars(main))
    finally:
        sys.modules["__main__"] = before  # a process that gradlab starts looks for its code in sys.modules
        atexit.register(sys.modules.__setitem__, "__main__", main)  # runs before the exit handlers that the code added


def _cells(notebook: Path) -> list[str]:
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError):
        raise NotRunnableError(f"{notebook}: not a readable notebook") from None


def _run_cells(notebook: str, cells: list[str]) -> None:
    """Run a notebook's cells in IPython, so that magics work, and raise the first error, at which *Run all* stops."""
    from IPython.core.compilerop import CachingCompiler
    from IPython.core.interactiveshell import InteractiveShell

    class Compiler(CachingCompiler):
        def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
            return f"{notebook}, cell {number}"  # the file name in findings

    shell: Any = InteractiveShell(colors="nocolor", compiler_class=Compiler)
    shell.enable_gui = lambda gui=None: None  # %matplotlib needs an event loop, and none runs here
    for shell.execution_count, cell in enumerate(cells, start=1):
        shell.run_cell(cell, store_history=True).raise_error()
