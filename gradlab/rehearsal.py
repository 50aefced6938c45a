"""Rehearsal: a recipe's own text run on fake tensors under a ledger, up to and through its second update.

The first update makes the optimizer's state and leaves behind what a loop leaves behind: ``.grad``, ``output``,
``loss``. The second one is the steady state, and the one that is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from .checkpointing import checkpointing
from .fakes import Fakes
from .loop import Program, Recipe
from .memory import Ledger, MemoryPoint
from .refusals import ForecastError, explaining, hushed
from .subjects import Subject

LARGE = 100_000_000
"""Parameters from which on a long window is cut short."""
MICRO_BATCHES = 3
"""Micro-batches of a large model's window that are run; the others would repeat the third."""
_AMP = {"off": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Rehearsal:
    """What the ledger said of the measured update."""

    peak: int
    at_peak: dict[str, int]
    peak_at: MemoryPoint
    timeline: list[MemoryPoint]
    parameters: int
    micro_batches: int
    """How many of the window were run."""


def rehearse(
    subject: Subject,
    recipe: Recipe,
    *,
    checkpoint: bool,
    device: str,
    prime: bool | None = None,
    on_calls: Callable[[int, int], None] | None = None,
) -> Rehearsal:
    """Run a subject through a recipe; ``device`` "cuda" updates all parameters at once, as PyTorch does on a GPU.

    ``prime`` puts the state that a first update leaves behind in place instead of running it; that is known for the
    published sizes only, where it is the default. Raises ForecastError.
    """
    program = Program(recipe.source())
    prime = subject.size is not None if prime is None else prime
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=()))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(hushed())
        fakes = Fakes()
        with explaining(subject.name, program):
            model = subject.build(fakes)
        stack.enter_context(checkpointing(model) if checkpoint else nullcontext())
        with explaining(subject.name, program):
            stage = _Stage(subject, recipe, program, fakes, model, device)
            if on_calls is not None:
                expected = stage.expected(prime=prime)
                fakes.on_calls = lambda calls: on_calls(calls, expected)
            return stage.measured(prime=prime)


class _Stage:
    """The names that the loop sees, all of them fake."""

    def __init__(
        self, subject: Subject, recipe: Recipe, program: Program, fakes: Fakes, model: nn.Module, device: str
    ) -> None:
        self.subject, self.recipe, self.program, self.fakes, self.model = subject, recipe, program, fakes, model
        self.parameters = sum(p.numel() for p in model.parameters())
        window = recipe.accumulate
        self.run = min(window, MICRO_BATCHES) if self.parameters >= LARGE else window
        pairs, epochs = subject.batches(fakes, window)
        self.inputs = pairs
        cut = self.run < window
        self.namespace: dict[str, Any] = {
            "torch": torch,
            "model": model,
            "loss_fn": subject.loss_fn,
            "batches": pairs[: self.run] if cut else pairs,
            "device": "cpu",
            "epochs": 2 if cut else epochs,
        }
        self.device = device

    def expected(self, *, prime: bool) -> int:
        """Guess how many operations there are to run, from what a transformer takes for each parameter tensor."""
        tensors = sum(1 for _ in self.model.parameters())
        return tensors * (60 * self.run * (1 if prime else 2) + 10)

    def measured(self, *, prime: bool) -> Rehearsal:
        """Run the loop's own set-up and updates, and return what the ledger saw of the last one."""
        with self.fakes:
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
                if prime:
                    self._prime(optimizer, scaler)
                self._run(ledger, updates=1 if prime else 2)
        if any(p.grad is not None and p.grad.is_sparse for p in self.model.parameters()):
            raise ForecastError(
                f"forecast: {self.subject.name} has sparse gradients, whose size depends on values. A forecast knows "
                "shapes and no values: use nn.Embedding(sparse=False)"
            )
        points = [point for point in ledger.timeline if point.statement]
        first = points[0].number

        def counted(point: MemoryPoint) -> MemoryPoint:  # the measured update's own statements, from 1
            return replace(point, number=point.number - first + 1)

        timeline = [counted(point) for point in points]
        return Rehearsal(ledger.peak, ledger.at_peak, counted(ledger.peak_at), timeline, self.parameters, self.run)

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

    def _prime(self, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler | None) -> None:
        """Leave behind what a first update does: both states, ``.grad``, ``output`` and ``loss``."""
        assert self.subject.size is not None
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
        output = torch.empty(*tokens.shape, self.subject.size.vocabulary, dtype=_AMP[self.recipe.amp])
        self.namespace.update(output=output, loss=loss)
