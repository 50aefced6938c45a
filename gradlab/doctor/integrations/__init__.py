"""Callbacks that put the doctor into trainers: ``LightningDoctor`` and ``TrainerDoctor`` of HuggingFace.

Each is made when it is asked for, so that gradlab itself imports neither package. The report is printed when the
training ends, on the first process only, and kept as ``report``.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..watching import watch


def __getattr__(name: str) -> Any:
    makers = {"LightningDoctor": _lightning_doctor, "TrainerDoctor": _trainer_doctor}
    if name not in makers:
        raise AttributeError(f"{__name__} has no name {name!r}; it has {', '.join(makers)}")
    made = globals()[name] = makers[name]()
    return made


def _lightning_doctor() -> type:
    # Its two distributions have classes of their own: that of the trainer is the one that is loaded already.
    names = ("lightning.pytorch", "pytorch_lightning")
    loaded_first = sorted(names, key=lambda name: name not in sys.modules)
    base: Any = _needed("LightningDoctor", "lightning", *loaded_first).Callback

    class LightningDoctor(base):
        """Watches ``trainer.fit``: ``Trainer(callbacks=[LightningDoctor()])``."""

        report: watch

        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            self.report = _begin()

        def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
            _end(self.report, None, trainer.is_global_zero)

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            if hasattr(self, "report"):
                _end(self.report, exception, trainer.is_global_zero)

    return LightningDoctor


def _trainer_doctor() -> type:
    base: Any = _needed("TrainerDoctor", "transformers", "transformers").TrainerCallback

    class TrainerDoctor(base):
        """Watches ``trainer.train``: ``Trainer(callbacks=[TrainerDoctor()], ...)``.

        The Trainer tells its callbacks of no error: a training that ends in one has no report.
        """

        report: watch

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if hasattr(self, "report"):  # of a training that has ended in an error
                self.report.__exit__(None, None, None)
            self.report = _begin()

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            _end(self.report, None, state.is_world_process_zero)

    return TrainerDoctor


def _needed(name: str, distribution: str, *packages: str) -> Any:
    """Import the first of some packages that is there."""
    for package in packages:
        try:
            return importlib.import_module(package)
        except ModuleNotFoundError as error:
            if not package.startswith(error.name or package):
                raise
    raise ImportError(f"{name} needs {' or '.join(packages)}, which is not installed: pip install {distribution}")


def _begin() -> watch:
    from ..watching import watch

    return watch().__enter__()


def _end(report: watch, error: BaseException | None, prints: bool) -> None:
    """Write the report, and print it if this is the process that prints."""
    from ..reports import FindingFilter

    report.__exit__(None, error, None)
    FindingFilter().apply(report)
    if prints:
        print(report.text)
