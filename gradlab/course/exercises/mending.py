"""Loops to mend: the learner edits a broken training loop in a cell, and the check runs it under ``watch``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from ..._checks import brief
from ..._process import main_thread, preserving_rng, preserving_torch_state
from ...doctor import Report, watch
from ...drawing import themed_svg, to_svg
from ...formatting import short
from ..figures.curves import curves
from .checking import alike, error_sentence, is_unchanged, no_function, stub_of
from .loops import all_weights
from .texts import NOT_ATTEMPTED, NOT_YET, RIGHT, Exercise, Verdict

# A loop with the solution's operations in the same order ends with the same weights, bit for bit. Summing micro-batches
# in another order makes the weights differ by 1e-5 after 94 updates, and omitting AMP or dropout by over 1e-2.
_TOLERANCE = 1e-3


@dataclass
class LoopRun:
    """The outcome of a loop: its losses, its result, and the weights of its models afterwards."""

    losses: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    """The losses that were computed with gradients disabled."""
    weights: Tensor = field(default_factory=lambda: torch.zeros(0))
    result: object = None
    trouble: str = ""
    """The error that the loop raised, as a sentence without its full stop, or "" if there is none."""

    def recording(self, loss_fn: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """Wrap a loss function so that its values go to ``losses`` or, with gradients disabled, to ``validation``."""

        def recorded(output: Tensor, target: Tensor) -> Tensor:
            loss = loss_fn(output, target)
            (self.losses if torch.is_grad_enabled() else self.validation).append(float(loss.detach()))
            return loss

        return recorded


@dataclass(frozen=True)
class Mending:
    """A check that runs a mended loop once and compares weights, number of losses and result with the solution's."""

    arguments: Callable[[], tuple[object, ...]]
    """Makes new arguments for the loop, such as models, a loss function and batches, from torch's random numbers."""
    validates: bool = False
    """Whether the verdict shows the validation losses, which are computed without gradients once an epoch."""

    @property
    def loss_name(self) -> str:
        """The label that the verdict and its plot use for the values from ``losses()``."""
        return "loss on new pictures" if self.validates else "loss"

    def losses(self, run: LoopRun) -> list[float]:
        """Return the losses that the verdict shows."""
        return run.validation if self.validates else run.losses

    def run(self, loop: Callable[..., object], report: AbstractContextManager[Any] = nullcontext()) -> LoopRun:  # noqa: B008
        """Run a loop in the context ``report`` and return its outcome, including any error except KeyboardInterrupt."""
        torch.manual_seed(0)
        run, arguments = LoopRun(), self.arguments()
        models = [argument for argument in arguments if isinstance(argument, nn.Module)]
        recording = [run.recording(a) if callable(a) and not isinstance(a, nn.Module) else a for a in arguments]
        try:
            with report:
                run.result = loop(*recording)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            run.trouble = error_sentence(error)
        run.weights = all_weights(*models)
        return run

    def check(self, exercise: Exercise, answer: Any) -> Verdict:
        """Return the Verdict on a loop, with a picture of its losses and of the original loop's losses.

        If the loop is unchanged, the picture shows the solution's losses and the original loop's losses.
        """
        stub = stub_of(exercise.stub)
        if answer is None or answer is ...:
            return Verdict(NOT_ATTEMPTED, "Fix the loop and pass it to check().")
        if not callable(answer):
            return no_function(exercise, answer)
        unchanged = is_unchanged(answer, stub)
        with main_thread.hold(), preserving_rng(), preserving_torch_state(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch itself warns about some of the mistakes
            before, right = _run_text(self, exercise.stub), _run_text(self, exercise.solution)
            report = watch()
            mine = self.run(answer, report)
        remark = _difference(mine, right, report, short(self.losses(right)[-1]))
        state = NOT_ATTEMPTED if unchanged else NOT_YET if remark else RIGHT
        course = f"No {self.loss_name} is computed"
        if losses := self.losses(mine):
            course = f"The {self.loss_name} goes from {short(losses[0])} to {short(losses[-1])}"
        sentence = f"{course}{remark or ', as it should, and `watch` finds nothing'}."
        runs = {"fixed" if unchanged else "yours": right if unchanged else mine, "original": before}
        return Verdict(state, sentence, picture=self.draw(runs), report=None if state == RIGHT else report)

    def draw(self, runs: dict[str, LoopRun]) -> str | None:
        """Return an SVG plot of each run's losses, with the run "original" dashed, or None if no run has losses."""
        lines = {name: self.losses(run) for name, run in runs.items() if self.losses(run)}
        if not lines:
            return None
        reused = [name for name in lines if name == "original"]
        counted = "epochs" if self.validates else "batches"
        figure = curves(lines, self.loss_name, reused=reused, first=1, counted=counted, y=self.loss_name)
        return themed_svg(to_svg(figure.placed))


@cache  # the original loop and the solution are the same in every check
def _run_text(mending: Mending, text: str) -> LoopRun:
    return mending.run(stub_of(text))


def _difference(mine: LoopRun, right: LoopRun, report: Report, end: str) -> str:
    """Return the end of the verdict's sentence, which says what is wrong with the loop, or "" for a right loop."""
    if mine.trouble:
        return f". {mine.trouble}"
    if len(mine.losses) != len(right.losses) or len(mine.validation) != len(right.validation):
        counts = [len(run.losses) + len(run.validation) for run in (mine, right)]
        return f". It computes {counts[0]:,} losses, and a right loop computes {counts[1]:,}"
    a, b = mine.weights, right.weights
    same = a.shape == b.shape and torch.allclose(a, b, _TOLERANCE, _TOLERANCE)
    if report.wrong:
        return ", as it should, but `watch` has a finding" if same else f"; in a right loop it goes to {end}"
    if not same:
        return f"; in a right loop it goes to {end}. `watch` finds nothing, but the weights differ from a right loop's"
    if isinstance(mine.result, Tensor) and mine.result.requires_grad:
        return ", as it should, but what the loop returns still has its graph"
    if right.result is not None and not alike(mine.result, right.result, _TOLERANCE, 0.0):
        return f", as it should, but the loop returns {brief(mine.result)} and not {brief(right.result)}"
    return ""
