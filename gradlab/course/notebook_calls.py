"""What notebooks call in one line: a call that fails, a loop run plainly, the doctor."""

from __future__ import annotations

import contextlib
import io
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .._process import main_thread
from ..doctor import run_script
from ..tasks import Task


def attempt(call: Callable[..., Any], *arguments: Any) -> None:
    """Call it, and print "no error", or the kind of the error and its first sentence.

    Only RuntimeError and ValueError are caught, the errors that PyTorch raises for a use of autograd that is wrong.
    """
    try:
        call(*arguments)
    except (RuntimeError, ValueError) as error:
        print(f"{type(error).__name__}: {str(error).split('. ')[0]}")
    else:
        print("no error")


def weights_after(loop: str, task: Task) -> Tensor:
    """Run a loop's text for one epoch on a fresh model of a task, and return the model's weights in one row.

    The text sees ``torch``, ``model``, ``loss_fn``, ``batches``, ``device`` and ``epochs``.
    """
    names: dict[str, Any] = {"torch": torch, "model": task.build(seed=0), "loss_fn": task.loss_fn}
    names |= {"batches": task.batches, "device": task.device, "epochs": 1}
    exec(loop, names)
    return torch.cat([param.detach().flatten() for param in names["model"].parameters()])


@dataclass(frozen=True)
class CommandResult:
    """What a command printed, and its exit code."""

    command: str
    printed: str
    code: int

    def __repr__(self) -> str:
        return f"$ {self.command}\n{self.printed.rstrip()}\n\nexit code {self.code}"


def doctor_command(script: str) -> CommandResult:
    """Do what ``python -m gradlab doctor train.py`` does with a script of this text in a temporary folder.

    It runs in this Python: starting another one would take seconds.
    """
    printed = io.StringIO()
    with main_thread.hold(), tempfile.TemporaryDirectory(prefix="gradlab-") as folder, contextlib.chdir(folder):
        Path("train.py").write_text(script, encoding="utf-8")
        with warnings.catch_warnings(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            warnings.simplefilter("ignore")
            code = run_script("train.py", form="text")
    return CommandResult("python -m gradlab doctor train.py", printed.getvalue(), code)
