"""Runs a Program on a task, statement by statement, and finds its way back when the program fails."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import nullcontext
from typing import Any

from torch import nn

from ..memory import Ledger
from .bound_program import Loop
from ..gradients import Provenance
from .rng import OwnRandomness
from .snapshot import Snapshot
from .program import LoopError, Program

MOST_STATEMENTS = 200_000
"""Statements without an update after which a loop is taken to make none."""


class Engine:
    """The program that runs now, its place in it, and the way back.

    At every boundary (between two updates) another program can be adopted. One that is ``guarded`` is a learner's own
    text: the state is copied at each boundary, and an error takes everything back there.
    """

    def __init__(
        self, program: Program, task: Any, model: nn.Module, book: Provenance, seed: int, *, guarded: bool = False
    ) -> None:
        """Run the program's set-up on a fresh model."""
        self._task, self._model, self._book = task, model, book
        self.randomness = OwnRandomness(seed, task.device)
        self.on_update: Callable[[Loop], None] | None = None
        self._idle = 0  # statements since the last update
        self._guard: Snapshot | None = None
        self._fallback: Loop | None = None
        with self.randomness:
            self._take(Loop(program, task, model, guarded=guarded))
        if guarded:
            self._guard = Snapshot(model, self.loop, book, self.randomness)

    @property
    def program(self) -> Program:
        """The program that runs now."""
        return self.loop.program

    def adopt(self, program: Program, *, guarded: bool = False) -> list[str]:
        """Go over to another program at a boundary; return the optimizers whose state starts empty.

        It goes on with the next batch of the epoch; a guarded one begins an epoch of its own.
        Raises LoopError if its set-up fails; then everything stays as it was.
        """
        old = self.loop
        guard = Snapshot(self._model, old, self._book, self.randomness) if guarded else None
        try:
            with self.randomness:
                loop = Loop(program, self._task, self._model, at=0 if guarded else old.position(), guarded=guarded)
            fresh = loop.take_state(old)
        except BaseException as error:
            if guard is not None:
                guard.restore()
            old.forget_update()  # it was told of backwards in the set-up
            if isinstance(error, (Exception, SystemExit)):  # exit() in a learner's loop must not end the kernel
                raise program.explain(error) from error
            raise
        self._statements.close()
        self._guard, self._fallback = guard, old if guarded else None
        if not guarded:
            old.close()
        self._take(loop)
        return fresh

    def run(self, most: int, ledger: Ledger | None = None) -> None:
        """Run statements until an update is complete, ``most`` at the most; ``ledger`` counts bytes after each."""
        loop = self.loop
        loop.updated = False
        self.at_boundary = False
        left = most
        try:
            with self.randomness, ledger or nullcontext():
                for self.index in self._statements:  # noqa: B020 - an attribute, so that it is right at any moment
                    left -= 1
                    loop.mark.unpaused = 0
                    if ledger is not None:
                        ledger.mark(loop.program.statements[self.index].word)
                    if loop.updated or not left:
                        break
                else:
                    self.done = self.at_boundary = True
        except BaseException as error:
            self._recover()
            if isinstance(error, (Exception, SystemExit)):  # exit() in a learner's loop must not end the kernel
                raise loop.program.explain(error) from error
            raise
        self._idle = 0 if loop.updated else self._idle + most - left
        if loop.updated:
            self.at_boundary = True
            if self.on_update is not None:
                self.on_update(loop)
            if loop.guarded:
                self._guard = Snapshot(self._model, loop, self._book, self.randomness)
                self._fallback = None
        elif self._idle >= MOST_STATEMENTS and not self.done:
            line = loop.program.statements[self.index].line
            self._recover()
            raise LoopError(line, f"{MOST_STATEMENTS:,} statements ran and no optimizer took a step", loop.program.text)

    def close(self) -> None:
        """Take the hooks off the optimizers."""
        self._statements.close()
        self.loop.close()

    def _take(self, loop: Loop, at: int | None = None) -> None:
        loop.forget_update()  # of one cut short, or of backwards in the set-up of another loop
        self.loop = loop
        self.index = loop.index
        self._statements: Generator[int, None, None] = loop.statements(at)
        self.at_boundary = True
        self.done = False
        self._idle = 0
        self._book.on_backward = loop.backward_began
        self._book.loss_scale = lambda: loop.scale() or 1.0
        self._book.watch(loop.optimizers.values())

    def _recover(self) -> None:
        """Go back to the last boundary as far as there is a copy of it, and be ready to run on from there."""
        self._statements.close()
        at = self.loop.position()
        if self._guard is not None:
            self._guard.restore()
            at = self._guard.at
            if self._fallback is not None:  # the new text never got through an update: the one before comes back
                self.loop.close()
                self.loop, self._fallback = self._fallback, None
                self._guard = self._guard if self.loop.guarded else None
        self._take(self.loop, at)
