"""Simulate: a recipe's own text run on fake tensors under a ledger, up to and through its second update.

The first update makes the optimizer's state and leaves behind what a loop leaves behind: ``.grad``, ``output``,
``loss``. The second one is the steady state, and the one that is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from .._process import preserving_rng
from ..loop import Program, Recipe
from ..memory import Ledger, MemoryPoint
from .checkpointing import checkpointing
from .errors import ForecastError, as_forecast_error, quiet_fake_tensor_log
from .fake_mode import CpuFakeTensorMode
from .workload import Workload

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
