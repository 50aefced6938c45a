"""Runs a Program on a task, statement by statement, and finds its way back when the program fails."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Generator
from contextlib import nullcontext
from typing import Any

from torch import nn

from .._process import RandomStream, copy_state
from ..gradients import Provenance
from ..memory import Ledger
from .bound_program import BoundProgram
from .program import LoopError, Program


class Snapshot:
    """Weights, buffers, gradients, optimizer and scaler state, random numbers and provenance at one boundary."""

    def __init__(self, model: nn.Module, loop: BoundProgram, provenance: Provenance, rng: RandomStream) -> None:
        self._provenance, self._rng = provenance, rng
        self._put_back = copy_state([model, *loop.optimizers.values(), *loop.scalers.values()])
        self._random = rng.state()
        self._histories = provenance.copy_histories()
        self.position = loop.position()

    def restore(self) -> None:
        """Put everything back, any number of times; the loop's generator is the caller's to renew."""
        self._rng.set_state(self._random)
        self._put_back()
        self._provenance.restore_histories(copy.deepcopy(self._histories))


MOST_STATEMENTS = 200_000
"""Statements without an update after which a loop is taken to make none."""


class Engine:
    """The program that runs now, its place in it, and the way back; it begins at batch ``first_batch`` of an epoch.

    At every boundary (between two updates) it can switch to another program. One with ``is_edited`` is a learner's own
    text: the state is copied at each boundary, and an error takes everything back there.
    """

    def __init__(
        self,
        program: Program,
        task: Any,
        model: nn.Module,
        provenance: Provenance,
        rng: RandomStream,
        *,
        first_batch: int = 0,
        is_edited: bool = False,
    ) -> None:
        self._task, self._model, self._provenance = task, model, provenance
        self.rng = rng
        self.on_update: Callable[[BoundProgram], None] | None = None
        self.statements_since_update = 0
        """Statements that have run since the newest update, or since the program was installed after it."""
        self._checkpoint: Snapshot | None = None
        self._previous_program: BoundProgram | None = None
        with self.rng:
            self._install(BoundProgram(program, task, model, is_edited=is_edited), first_batch)
        if is_edited:
            self._checkpoint = Snapshot(model, self.loop, provenance, self.rng)

    def switch_program(self, program: Program, *, is_edited: bool = False) -> list[str]:
        """Go over to another program at a boundary; return the optimizers whose state starts empty.

        It goes on with the next batch of the epoch; an edited one begins an epoch of its own.
        Raises LoopError if its set-up fails; then everything stays as it was.
        """
        old = self.loop
        checkpoint = Snapshot(self._model, old, self._provenance, self.rng) if is_edited else None
        try:
            with self.rng:
                loop = BoundProgram(program, self._task, self._model, is_edited=is_edited)
            fresh = loop.copy_optimizer_state_from(old)
        except BaseException as error:
            if checkpoint is not None:
                checkpoint.restore()
            old.discard_update()  # it was told of backwards in the set-up
            if isinstance(error, (Exception, SystemExit)):  # exit() in a learner's loop must not end the kernel
                raise program.explain(error) from error
            raise
        self._statements.close()
        self._checkpoint, self._previous_program = checkpoint, old if is_edited else None
        if not is_edited:
            old.close()
        self._install(loop, 0 if is_edited else old.position())
        return fresh

    def run(self, max_statements: int, ledger: Ledger | None = None, deadline: float = math.inf) -> None:
        """Run statements until an update is complete, ``max_statements`` at most; ``ledger`` counts bytes.

        It also ends after the first statement that is done past ``deadline``, a time of ``time.perf_counter``.
        """
        loop = self.loop
        loop.updated = False
        self.at_boundary = False
        left = max_statements
        try:
            with self.rng, loop.settings, ledger or nullcontext():
                for self.index in self._statements:  # noqa: B020 - an attribute, so that it is right at any moment
                    left -= 1
                    loop.reads_since_pause = 0
                    if ledger is not None:
                        ledger.mark(loop.program.statements[self.index].label)
                    if loop.updated or not left or time.perf_counter() > deadline:
                        break
                else:
                    self.done = self.at_boundary = True
        except BaseException as error:
            self.recover()
            if isinstance(error, (Exception, SystemExit)):  # exit() in a learner's loop must not end the kernel
                raise loop.program.explain(error) from error
            raise
        self.statements_since_update = 0 if loop.updated else self.statements_since_update + max_statements - left
        if loop.updated:
            self.at_boundary = True
            if self.on_update is not None:
                self.on_update(loop)
            if loop.is_edited:
                self._checkpoint = Snapshot(self._model, loop, self._provenance, self.rng)
                self._previous_program = None
        elif self.statements_since_update >= MOST_STATEMENTS and not self.done:
            line = loop.program.statements[self.index].line
            self.recover()
            raise LoopError(line, f"{MOST_STATEMENTS:,} statements ran and no optimizer took a step", loop.program.text)

    def _install(self, loop: BoundProgram, first_batch: int) -> None:
        loop.discard_update()  # of one cut short, or of backwards in the set-up of another loop
        self.loop = loop
        self.index = loop.index
        self._statements: Generator[int, None, None] = loop.statements(first_batch)
        self.at_boundary = True
        self.done = False
        self.statements_since_update = 0
        self._provenance.on_backward = loop.on_backward
        self._provenance.watch(loop.optimizers.values(), has_scaler=bool(loop.scalers))

    def recover(self) -> None:
        """Go back to the last boundary as far as there is a copy of it, and be ready to run on from there."""
        self._statements.close()
        position = self.loop.position()
        if self._checkpoint is not None:
            self._checkpoint.restore()
            position = self._checkpoint.position
            if self._previous_program is not None:  # the new text completed no update: the one before comes back
                self.loop.close()
                self.loop, self._previous_program = self._previous_program, None
                self._checkpoint = self._checkpoint if self.loop.is_edited else None
        self._install(self.loop, position)

    def close(self) -> None:
        """Take the hooks off the optimizers."""
        self._statements.close()
        self.loop.close()
