"""Counterfactual: how a run would go on without its newest switch, as real training in a copy of it."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from torch import nn

from ..gradients import Provenance
from .bound_program import BoundProgram
from .engine import MOST_STATEMENTS, Engine
from .history import HistoryWriter
from .recipe import Recipe

_BURST_BUDGET_MS = 500.0  # of work that may be done before any is allowed for: it catches up after a pause


class Counterfactual:
    """A copy of a run that goes on with the loop as it was before a switch, while the run itself goes on with another.

    It has the run's weights, ``.grad``, state of optimizer and scaler, random numbers and place in the batches at the
    moment when it is made, and shares none of them. Whatever goes wrong ends it, and never the run.
    """

    def __init__(self, task: Any, recipe: Recipe, model: nn.Module, engine: Engine, updates: int) -> None:
        """Copy a run at a boundary, ``updates`` after its start; raises what a model raises that has no copy."""
        self.task = task
        self.recipe = recipe  # that goes on
        self.switched = ""  # what the switch would have left as it was: "zero_grad on"
        self.begun = self.updates = updates  # those of the run when it was copied, and those of the copy
        self.ended = ""  # why it goes no further, "" while it goes on
        self.after_update: Callable[[], None] | None = None  # called after each update, as Run has it
        self.model = copy.deepcopy(model)
        for param, of_run in zip(self.model.parameters(), model.parameters(), strict=True):
            param.grad = None if of_run.grad is None else of_run.grad.detach().clone()
        self._provenance = Provenance(self.model.named_parameters())
        loop, rng = engine.loop, engine.rng.copy()
        self._engine = Engine(loop.program, task, self.model, self._provenance, rng, first_batch=loop.position())
        self._engine.on_update = self._note_update
        states: dict[str, Any] = {**loop.optimizers, **loop.scalers}
        copies: dict[str, Any] = {**self._engine.loop.optimizers, **self._engine.loop.scalers}
        for name, ours in copies.items():
            ours.load_state_dict(copy.deepcopy(states[name].state_dict()))
        self._writer: HistoryWriter | None = HistoryWriter(self.model, updates)
        self.record = self._writer.record
        """The losses since then."""
        self._budget_ms = _BURST_BUDGET_MS

    def follow(self, updates: int, allowed: float) -> None:
        """Go on to this update, or end: it may keep a processor busy for ``allowed`` ms more."""
        if self.ended:
            return
        self._budget_ms = max(min(self._budget_ms + allowed, _BURST_BUDGET_MS), allowed)
        try:
            with self._engine.rng:
                while not self.ended and self.updates < updates:
                    began = time.thread_time()
                    self._engine.run(MOST_STATEMENTS)
                    self._budget_ms -= (time.thread_time() - began) * 1000
                    if self._budget_ms < 0:
                        self.end("going on would take more than a tenth of a processor core")
            self._write()
        except Exception as error:  # memory, or whatever the learner's model raises: the run itself is in order
            self.end(f"then it stopped with {type(error.__cause__ or error).__name__}")
        except BaseException:
            self.end("then it was interrupted")
            raise

    def end(self, why: str) -> None:
        """Go no further, and let go of all that training needs; the losses so far stay."""
        if self.ended:
            return
        self.ended = why
        with suppress(Exception):  # a loss on a GPU that has failed
            self._write()
        self._engine.close()
        self._provenance.close()
        loop = self._engine.loop
        for contents in (loop.namespace, loop.losses, loop.optimizers, loop.scalers):
            contents.clear()
        self.model, self._writer = nn.Module(), None
        del self._engine, self._provenance

    def _note_update(self, loop: BoundProgram) -> None:
        losses, _, skipped = loop.pop_update()
        self.updates += 1
        assert self._writer is not None
        self._writer.updated(losses, None, skipped)
        if self.after_update is not None:
            self.after_update()

    def _write(self) -> None:
        if self._writer is not None:
            self._writer.flush()
        if self.record.broken is not None:
            self.end(f"its loss is inf or NaN from update {self.record.broken:,}")
