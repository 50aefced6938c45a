"""UnswitchedRun: how a run would go on without its newest switch, as real training in a copy of it."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from .._process import RandomStream
from .bound_program import BoundProgram
from .history import History
from .recipe import Recipe

_IN_HAND = 500.0  # ms of work that may be done before any is allowed for: it catches up after a pause


class UnswitchedRun:
    """A copy of a run that goes on with the loop as it was before a switch, while the run itself goes on with another.

    It has the run's weights, ``.grad``, state of optimizer and scaler, random numbers and place in the batches at the
    moment when it is made, and shares none of them. Nothing watches it but its loss. Whatever goes wrong ends it, and
    never the run.
    """

    def __init__(
        self, task: Any, recipe: Recipe, model: nn.Module, loop: BoundProgram, rng: RandomStream, at: int
    ) -> None:
        """Copy a run at a boundary, ``at`` updates after its start; raises what a model raises that has no copy."""
        self.task = task
        self.recipe = recipe
        """The recipe that goes on."""
        self.switched = ""
        """What the switch would have left as it was: "zero_grad on"."""
        self.begun = self.updates = at
        """The updates of the run when it was copied, and those of the copy."""
        self.record = History()
        """The losses since then."""
        self.ended = ""
        """Why it goes no further, "" while it goes on."""
        self.after_update: Callable[[], None] | None = None
        """Called after each update, as Run has it."""
        self.model = copy.deepcopy(model)
        for param, of_run in zip(self.model.parameters(), model.parameters(), strict=True):
            param.grad = None if of_run.grad is None else of_run.grad.detach().clone()
        self._rng = rng.copy()
        with self._rng:
            self._loop = BoundProgram(loop.program, task, self.model, at=loop.position())
        states: dict[str, Any] = {**loop.optimizers, **loop.scalers}
        copies: dict[str, Any] = {**self._loop.optimizers, **self._loop.scalers}
        for name, ours in copies.items():
            ours.load_state_dict(copy.deepcopy(states[name].state_dict()))
        self._statements = self._loop.statements()
        self._waiting: list[tuple[int, list[Tensor], bool]] = []  # losses that are still on the device
        self._allowed = _IN_HAND

    def follow(self, updates: int, allowed: float) -> None:
        """Go on to this update, or end: it may keep a processor busy for ``allowed`` ms more."""
        self._allowed = max(min(self._allowed + allowed, _IN_HAND), allowed)
        try:
            with self._rng:
                while not self.ended and self.updates < updates:
                    began = time.thread_time()
                    self._run_update()
                    self._allowed -= (time.thread_time() - began) * 1000
                    if self._allowed < 0:
                        self.end("going on would take more than a tenth of a processor core")
            self._write()
        except Exception as error:  # memory, or whatever the learner's model raises: the run itself is in order
            self.end(f"then it stopped with {type(error).__name__}")
        except BaseException:
            self.end("then it was interrupted")
            raise

    def end(self, why: str) -> None:
        """Go no further, and let go of all that training needs; the losses so far stay."""
        if self.ended:
            return
        self.ended = why
        try:
            self._write()
        except Exception:  # a loss on a GPU that has failed
            self._waiting.clear()
        self._statements.close()
        self._loop.close()
        self._loop.namespace.clear()
        self._loop.losses.clear()
        self._loop.optimizers.clear()
        self._loop.scalers.clear()
        self.model = nn.Module()

    def _run_update(self) -> None:
        loop = self._loop
        loop.updated = False
        for index in self._statements:
            loop.cursor.reads_since_pause = 0
            if loop.program.statements[index].label == "backward":
                loop.on_backward()
            if loop.updated:
                break
        losses, _, skipped = loop.pop_update()
        self.updates += 1
        self._waiting.append((self.updates, losses, skipped))
        if self.after_update is not None:
            self.after_update()

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        for update, losses, skipped in waiting:
            values = [loss.item() for loss in losses]
            loss = sum(value / len(values) for value in values) if values else None
            self.record.write(update, loss, math.nan, math.nan, math.nan, skipped=skipped)
        if self.record.broken is not None:
            self.end(f"its loss is inf or NaN from update {self.record.broken:,}")
