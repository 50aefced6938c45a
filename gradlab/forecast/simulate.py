"""Simulate: a recipe's own text run on fake tensors under a ledger, up to and through its second update.

The first update makes the optimizer's state and leaves behind what a loop leaves behind: ``.grad``, ``output``,
``loss``. The second one is the steady state, and the one that is measured. A model that cannot be run without values is
refused in one sentence that names the line and says what to do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import _torch
from .._frames import Owner, code_owner, raised_at
from .._process import preserving_rng
from ..loop import Program, Recipe
from ..memory import Ledger, MemoryPoint
from .checkpointing import checkpointing
from .fake_mode import CpuFakeTensorMode
from .workload import Workload


class ForecastError(ValueError):
    """A model that cannot be run on tensors without memory; the message says where and what to do."""


@contextmanager
def quiet_fake_tensor_log() -> Iterator[None]:
    """Keep PyTorch from logging what the ForecastError is about to say."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


@contextmanager
def as_forecast_error(name: str, program: Program) -> Iterator[None]:
    """Turn any error of the block into a ForecastError about the model of that name."""
    try:
        yield
    except ForecastError:
        raise
    except Exception as error:
        raise _explained(name, program, error) from error


def _explained(name: str, program: Program, error: Exception) -> ForecastError:
    """Say which line failed, why, and what to do."""
    where = program.explain(error)
    place = _place(program, error)
    if isinstance(error, _torch.DataDependentOutputException):
        said = f"asks for a value ({error.func}: .item(), float(), or an if on a tensor)"
        advice = "A forecast knows shapes and no values: leave it out, or decide with torch.where"
    elif isinstance(error, _torch.DynamicOutputShapeException):
        said = f"has a shape that depends on values ({error.func}: nonzero, unique, or a mask as an index)"
        advice = "A forecast knows shapes and no values: use torch.where or a fixed number of entries"
    else:
        said = f"fails without memory: {where.problem}"
        cuda = "cuda" in where.problem.lower()
        advice = "A forecast runs on the CPU's kernels: leave out .cuda() and .to() a GPU. " if cuda else ""
        advice += (
            "Check that model(x) and loss_fn(output, y) run on a real batch of this shape, all of it on one device"
        )
    line = f" at `{program.text.splitlines()[where.line - 1].strip()}`" if where.line else " while it is built"
    return ForecastError(f"forecast: {name} {said}{line}{place}. {advice}")


def _place(program: Program, error: Exception) -> str:
    """Name the innermost line of the model's own code that the error came through."""
    text = program.filename
    found = raised_at(error, lambda file: file != text and code_owner(file) is not Owner.OURS)
    if found is None:
        return ""
    code, line = found
    return f", in {code.co_name}() at {Path(code.co_filename).name}:{line}"


LARGE = 100_000_000
"""Parameters from which on a long window is cut short."""
MICRO_BATCHES = 3
"""Micro-batches of a large model's window that are run; the others would repeat the third."""
_AMP = {"off": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class SimulatedUpdate:
    """What the ledger said of the measured update."""

    peak: int
    at_peak: dict[str, int]
    peak_at: MemoryPoint
    timeline: list[MemoryPoint]
    parameters: int
    micro_batches: int
    """How many of the window were run."""


def simulate(
    workload: Workload,
    recipe: Recipe,
    *,
    checkpoint: bool,
    device: str,
    skip_first_update: bool | None = None,
    on_calls: Callable[[int, int], None] | None = None,
) -> SimulatedUpdate:
    """Run a workload through a recipe; ``device`` "cuda" updates all parameters at once, as PyTorch does on a GPU.

    ``skip_first_update`` puts the state that a first update leaves behind in place instead of running it; that is
    known for the published sizes only, where it is the default. Raises ForecastError.
    """
    program = Program(recipe.source())
    skip_first_update = workload.size is not None if skip_first_update is None else skip_first_update
    with ExitStack() as stack:
        stack.enter_context(preserving_rng())
        stack.enter_context(torch.enable_grad())
        stack.enter_context(quiet_fake_tensor_log())
        mode = CpuFakeTensorMode()
        with as_forecast_error(workload.name, program):
            model = workload.build(mode)
        stack.enter_context(checkpointing(model) if checkpoint else nullcontext())
        with as_forecast_error(workload.name, program):
            simulation = _Simulation(workload, recipe, program, mode, model, device)
            if on_calls is not None:
                expected = simulation.expected(skip_first_update=skip_first_update)
                mode.on_calls = lambda calls: on_calls(calls, expected)
            return simulation.measured(skip_first_update=skip_first_update)


def from_one(points: Sequence[MemoryPoint]) -> list[MemoryPoint]:
    """Count the statements of a timeline from 1."""
    return [replace(point, number=point.number - points[0].number + 1) for point in points]


class _Simulation:
    """The names that the loop sees, all of them fake."""

    def __init__(
        self,
        workload: Workload,
        recipe: Recipe,
        program: Program,
        mode: CpuFakeTensorMode,
        model: nn.Module,
        device: str,
    ) -> None:
        self.workload, self.recipe, self.program, self.mode, self.model = workload, recipe, program, mode, model
        self.parameters = sum(p.numel() for p in model.parameters())
        window = recipe.accumulate
        self.run = min(window, MICRO_BATCHES) if self.parameters >= LARGE else window
        pairs, epochs = workload.batches(mode, window)
        self.inputs = pairs
        cut = self.run < window
        self.namespace: dict[str, Any] = {
            "torch": torch,
            "model": model,
            "loss_fn": workload.loss_fn,
            "batches": pairs[: self.run] if cut else pairs,
            "device": "cpu",
            "epochs": 2 if cut else epochs,
        }
        self.device = device

    def expected(self, *, skip_first_update: bool) -> int:
        """Guess how many operations there are to run, from what a transformer takes for each parameter tensor."""
        tensors = sum(1 for _ in self.model.parameters())
        return tensors * (20 * self.run * (1 if skip_first_update else 2) + 10)

    def measured(self, *, skip_first_update: bool) -> SimulatedUpdate:
        """Run the loop's own set-up and updates, and return what the ledger saw of the last one."""
        with self.mode:
            for _ in self.program.setup(self.namespace):
                pass
            optimizer, scaler = self.namespace["optimizer"], self.namespace.get("scaler")
            if self.device == "cuda":
                for group in optimizer.param_groups:
                    group["foreach"] = True
            if scaler is not None:  # whether a gradient is infinite cannot be asked here, so every step is taken
                scaler._maybe_opt_step = lambda optimizer, state, *args, **kwargs: optimizer.step(*args, **kwargs)
            ledger = Ledger(self.model, [optimizer], self.inputs)
            ledger.place = lambda: ""  # statements are named as they end
            with ledger:
                if skip_first_update:
                    self._put_state_in_place(optimizer, scaler)
                self._run(ledger, updates=1 if skip_first_update else 2)
        if any(p.grad is not None and p.grad.is_sparse for p in self.model.parameters()):
            raise ForecastError(
                f"forecast: {self.workload.name} has sparse gradients, whose size depends on values. A forecast knows "
                "shapes and no values: use nn.Embedding(sparse=False)"
            )
        points = [point for point in ledger.timeline if point.statement]
        *timeline, peak_at = from_one([*points, ledger.peak_at])
        return SimulatedUpdate(ledger.peak, ledger.at_peak, peak_at, timeline, self.parameters, self.run)

    def _run(self, ledger: Ledger, updates: int) -> None:
        statements = self.program.statements
        if updates == 1:
            ledger.forget()
        loop = self.program.loop(self.namespace)
        for index in loop:
            ledger.mark(statements[index].label)
            if index == len(statements) - 1:  # the loop's last line completes an update
                updates -= 1
                if updates == 0:
                    break
                if updates == 1:
                    ledger.forget()
        loop.close()

    def _put_state_in_place(self, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler | None) -> None:
        """Leave behind what a first update does: both states, ``.grad``, ``output`` and ``loss``."""
        assert self.workload.size is not None
        for parameter in self.model.parameters():
            parameter.grad = torch.empty_like(parameter)
        at_once = [group["foreach"] for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["foreach"] = True  # the quickest way to the same state
        loss = torch.empty(())
        if scaler is None:
            optimizer.step()
        else:
            scaler.scale(loss)
            scaler.step(optimizer)
            scaler.update()
        for group, before in zip(optimizer.param_groups, at_once, strict=True):
            group["foreach"] = before
        tokens = self.inputs[0][0]
        output = torch.empty(*tokens.shape, self.workload.size.vocabulary, dtype=_AMP[self.recipe.amp])
        self.namespace.update(output=output, loss=loss)
