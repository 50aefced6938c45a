"""Callbacks for Lightning (``LightningDoctor``) and HuggingFace (``TrainerDoctor``), and the cell magic ``%%doctor``.

Each callback class is created when it is first accessed, so that gradlab itself imports neither package. When training
ends, the callback stores its report in the attribute ``report``, and the first process also prints the report.
"""

from __future__ import annotations

import ast
import importlib
import sys
from typing import Any

from .reports import FindingFilter
from .watching import watch


def __getattr__(name: str) -> Any:
    makers = {"LightningDoctor": _lightning_doctor, "TrainerDoctor": _trainer_doctor}
    if name not in makers:
        raise AttributeError(f"{__name__} has no attribute {name!r}; choose from {', '.join(makers)}")
    callback = globals()[name] = makers[name]()
    return callback


def _lightning_doctor() -> type:
    # Lightning has two distributions with separate classes. The Trainer is from the one that is already loaded.
    packages = sorted(("lightning.pytorch", "pytorch_lightning"), key=lambda name: name not in sys.modules)
    base: Any = _needed("LightningDoctor", "lightning", *packages).Callback

    class LightningDoctor(base):
        """A Lightning callback that watches ``trainer.fit``; use it as ``Trainer(callbacks=[LightningDoctor()])``."""

        report: watch

        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            self.report = watch().__enter__()

        def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
            _end(self.report, None, trainer.is_global_zero)

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            if hasattr(self, "report"):
                _end(self.report, exception, trainer.is_global_zero)

    return LightningDoctor


def _trainer_doctor() -> type:
    base: Any = _needed("TrainerDoctor", "transformers", "transformers").TrainerCallback

    class TrainerDoctor(base):
        """A HuggingFace callback that watches ``trainer.train``; use it as ``Trainer(callbacks=[TrainerDoctor()])``.

        The Trainer does not report errors to its callbacks, so there is no report if training ends with an error.
        """

        report: watch

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if hasattr(self, "report"):  # if the previous training ended with an error, its watch is still running
                self.report.__exit__(None, None, None)
            self.report = watch().__enter__()

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            _end(self.report, None, state.is_world_process_zero)

    return TrainerDoctor


def _needed(name: str, distribution: str, *packages: str) -> Any:
    for package in packages:
        try:
            return importlib.import_module(package)
        except ModuleNotFoundError as error:
            if not package.startswith(error.name or package):
                raise
    raise ImportError(f"{name} needs {' or '.join(packages)}. Install it with: pip install {distribution}")


def _end(report: watch, error: BaseException | None, prints: bool) -> None:
    report.__exit__(None, error, None)
    FindingFilter().apply(report)
    if prints:
        print(report.text)


def add_doctor_magic(shell: Any) -> None:
    """Register the cell magic ``%%doctor`` in an IPython shell."""

    def doctor(line: str, cell: str) -> Any:
        """Run the cell and report what is wrong with its training loop."""
        if line.strip():
            raise ValueError(f"%%doctor takes no arguments, got {line.strip()!r}")
        return _run_cell(shell, cell)

    shell.register_magic_function(doctor, "cell")


def _run_cell(shell: Any, cell: str) -> Any:
    from IPython.display import display

    # Line numbers must count the %%doctor line, which ``cell`` lacks, and empty lines on top, which IPython removes.
    above = 1 + next((number for number, text in enumerate(cell.splitlines()) if text.strip()), 0)
    source = "\n" * above + shell.transform_cell(cell)
    file = shell.compile.cache(source, shell.execution_count)
    tree = shell.transform_ast(ast.parse(source, file))
    last = tree.body.pop().value if tree.body and isinstance(tree.body[-1], ast.Expr) else ast.Constant(None)
    statements = compile(tree, file, "exec")
    expression = compile(ast.fix_missing_locations(ast.Expression(last)), file, "eval")
    report = watch()
    try:
        with report:
            exec(statements, shell.user_ns)
            value = eval(expression, shell.user_ns)  # nosec B307 - the learner's own cell, as IPython would run it
    except BaseException as error:
        # tb_offset=0 omits no frame, because the doctor's own frames are already stripped from the traceback.
        traceback = shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__, tb_offset=0)
        error._render_traceback_ = lambda: traceback  # type: ignore[attr-defined]  # IPython calls this method
        raise
    finally:
        FindingFilter().apply(report)
        display(report)
    return None if source.rstrip().endswith(";") else value
