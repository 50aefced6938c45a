"""A Program bound to a task, with its namespace and position in the batches, and the Engine that runs it by statements.

The Engine switches from one program to another, and goes back when a program fails.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from .._process import KernelSettings, RandomStream, copy_state
from ..gradients import Provenance
from ..memory import Ledger
from .batches import TrackedBatches
from .program import LoopError, Program
from .recipe import LONGEST_WINDOW

MOST_BATCHES = 10_000
"""Batches that one statement may read; a loop inside a function or a ``with`` block would never pause."""
_SHORT_S = 0.1  # seconds: a statement that takes longer than this may never end
EPOCHS = 10**9
"""The value of ``epochs`` for a loop that plays until it is paused."""


class BoundProgram:
    """A program in a namespace of its own, which can be resumed within an epoch.

    Its set-up runs at once. ``statements`` then runs the rest of the interrupted epoch, as the text with
    ``epochs = 1`` and the remaining ``batches``, and after that the text with all of them.
    """

    def __init__(self, program: Program, task: Any, model: nn.Module, *, is_edited: bool = False) -> None:
        """Run the set-up; its errors pass unchanged. ``is_edited`` marks a text of the learner's own."""
        self.is_edited = is_edited
        self.program = program
        self.reads_since_pause = 0
        self.read = 0  # batches of this epoch that have been read
        self.updated = False  # whether the statement that just ran completed an update
        self.losses: deque[Tensor] = deque(maxlen=MOST_BATCHES)
        self.backwards = 0
        """Backward passes since the newest update."""
        self.window = 1
        """The most backward passes that one update has taken so far."""
        self._task = task
        self._attempted = self._applied = self._inside_scaler = self._unscaled = False
        self._skipped = False
        self._used_scale: float | None = None  # of the newest update, before ``scaler.update()`` changed it
        self._loss: Tensor | None = None
        self.namespace: dict[str, Any] = {
            "torch": torch,
            "model": model,
            "loss_fn": self._record_loss,
            "batches": TrackedBatches(task.batches, self._note_read),
            "device": task.device,
            "epochs": EPOCHS,
        }
        self.index = -1
        self.settings: AbstractContextManager[None] = KernelSettings() if is_edited else nullcontext()
        """Global settings by a text of the learner's own; its statements run inside this context."""
        with self.settings:
            for self.index in program.setup(self.namespace):  # noqa: B020 - an attribute of self, not self
                self.reads_since_pause = 0
        self.optimizers: dict[str, torch.optim.Optimizer] = {}
        self.scalers: dict[str, torch.amp.GradScaler] = {}
        self._handles: list[Any] = []
        for name, value in list(self.namespace.items()):
            if isinstance(value, torch.optim.Optimizer):
                self.optimizers[name] = value
                self._handles.append(value.register_step_post_hook(self._after_step))
            elif isinstance(value, torch.amp.GradScaler):
                self.scalers[name] = value
                self._watch_scaler(value)

    def statements(self) -> Generator[int, None, None]:
        """Run the loop from batch ``read`` of an epoch on, yielding the index of each statement after it ran."""
        if first := self.read:
            self.namespace.update(batches=TrackedBatches(self._task.batches[first:], self._note_read, first), epochs=1)
            yield from self.program.loop(self.namespace)
        self.namespace.update(batches=TrackedBatches(self._task.batches, self._note_read), epochs=EPOCHS)
        yield from self.program.loop(self.namespace)

    def position(self) -> int:
        """Return the number of batches of the epoch that have been read, 0 at its end."""
        return self.read % len(self._task.batches)

    def copy_optimizer_state_from(self, other: BoundProgram) -> list[str]:
        """Copy the state of an earlier loop's optimizers and scalers; return the optimizers that start empty."""
        fresh = []
        for name, optimizer in self.optimizers.items():
            old = other.optimizers.get(name)
            # The learning rate may change without a restart.
            if type(old) is type(optimizer) and old.defaults | {"lr": 0} == optimizer.defaults | {"lr": 0}:
                optimizer.state.update(old.state)
            else:
                fresh.append(name)
        for name, scaler in self.scalers.items():
            if name in other.scalers and scaler.is_enabled() and other.scalers[name].is_enabled():
                scaler.load_state_dict(other.scalers[name].state_dict())
        return fresh

    def on_backward(self) -> None:
        """Note the loss whose backward is under way, and an update without its ``scaler.update()``."""
        if self._attempted:
            self._complete()
        self.backwards += 1
        if self._loss is not None:
            self.losses.append(self._loss)
        elif isinstance(loss := self.namespace.get("loss"), Tensor) and loss.numel() == 1:
            self.losses.append(loss.detach())
        self._loss = None

    def pop_update(self) -> tuple[list[Tensor], float | None, bool]:
        """Return the newest update and forget it: its losses, their scale, and whether it was skipped."""
        losses = list(self.losses)
        self.window = min(max(self.window, self.backwards), LONGEST_WINDOW)
        self.losses.clear()
        self.backwards = 0
        return losses, self._used_scale, self._skipped

    def scale(self) -> float | None:
        """Return the loss scale, None without a scaler."""
        scaler = next(iter(self.scalers.values()), None)
        return None if scaler is None else float(scaler.get_scale())

    def scale_in_grad(self) -> float:
        """Return the factor still in the newest contributions to ``.grad``."""
        return (self.scale() or 1.0) if self.losses and not self._unscaled else 1.0

    def discard_update(self) -> None:
        """Forget the update that an error cut short, so that the next one can begin."""
        self.losses.clear()
        self.backwards, self._loss = 0, None
        self._attempted = self._applied = self._unscaled = False
        for scaler in self.scalers.values():
            if scaler.is_enabled():  # it remembers an unscale_() until update(), and would reject the next one
                getattr(scaler, "_per_optimizer_states", {}).clear()

    def close(self) -> None:
        """Take the hooks off the optimizers."""
        for handle in self._handles:
            handle.remove()

    def _note_read(self, position: int) -> None:
        """Note how far the epoch has been read; a RuntimeError ends a statement that never pauses."""
        self.read = position
        self.reads_since_pause += 1
        if self.reads_since_pause > MOST_BATCHES:
            self.reads_since_pause = 0
            raise RuntimeError(
                f"one statement read {MOST_BATCHES:,} batches: the loop must stand at the top level of the text, "
                "not in a function or a with block"
            )

    def _record_loss(self, *args: Any, **kwargs: Any) -> Any:
        """Call the task's loss function, and note the loss before the loop divides or scales it."""
        loss = self._task.loss_fn(*args, **kwargs)
        if isinstance(loss, Tensor) and loss.numel() == 1:
            self._loss = loss.detach() if loss.requires_grad else self._loss
        elif not self.is_edited:  # a text of the learner's own may reduce or split the loss
            got = f"tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
            raise TypeError(f"Task: loss_fn must return a tensor with one value, got a {got}")
        return loss

    def _after_step(self, optimizer: object, args: object, kwargs: object) -> None:
        self._applied = True
        if not self._inside_scaler:
            self._complete()

    def _watch_scaler(self, scaler: torch.amp.GradScaler) -> None:
        """Wrap the scaler's own methods: a skipped step fires no optimizer hook."""
        step, update, unscale_ = scaler.step, scaler.update, scaler.unscale_

        def watched_unscale(*args: Any, **kwargs: Any) -> None:
            unscale_(*args, **kwargs)
            self._unscaled = True

        def watched_step(*args: Any, **kwargs: Any) -> Any:
            self._inside_scaler = True
            try:
                result = step(*args, **kwargs)
            finally:
                self._inside_scaler = False
            self._attempted = self._unscaled = True
            return result

        def watched_update(*args: Any, **kwargs: Any) -> None:
            self._used_scale = float(scaler.get_scale())
            update(*args, **kwargs)
            self._unscaled = False
            if self._attempted:
                self._complete()

        # Only this object; the class stays as it is.
        scaler.unscale_ = watched_unscale  # type: ignore[method-assign]
        scaler.step, scaler.update = watched_step, watched_update  # type: ignore[method-assign]

    def _complete(self) -> None:
        self.updated = True
        self._skipped = not self._applied
        self._attempted = self._applied = False


class Snapshot:
    """Weights, buffers, gradients, optimizer and scaler state, random numbers and provenance at one boundary."""

    def __init__(self, model: nn.Module, loop: BoundProgram, provenance: Provenance, rng: RandomStream) -> None:
        self._provenance, self._rng = provenance, rng
        self._restore_state = copy_state([model, *loop.optimizers.values(), *loop.scalers.values()])
        self._random = rng.state()
        self._histories = provenance.copy_histories()
        self.position = loop.position()

    def restore(self) -> None:
        """Restore everything, any number of times; the caller must renew the loop's generator."""
        self._rng.set_state(self._random)
        self._restore_state()
        self._provenance.restore_histories(self._histories)


MOST_STATEMENTS = 200_000
"""Statements without an update after which a loop counts as making none."""


class Engine:
    """The running program, its position, and the last checkpoint; it begins at batch ``first_batch`` of an epoch.

    At every boundary (between two updates) it can switch to another program. One with ``is_edited`` is a learner's own
    text: the state is copied at each boundary, and restored after an error.
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
        self.deadline = math.inf
        """The time of ``time.perf_counter`` after which ``run`` ends, once a statement is done."""
        self._statement_began = -math.inf
        self.index = -1
        """The statement that ran last."""
        self.at_batch = False  # whether the newest run ended at a backward pass
        self._checkpoint: Snapshot | None = None
        self._previous_program: BoundProgram | None = None
        with self.rng:
            self._install(BoundProgram(program, task, model, is_edited=is_edited), first_batch)
        if is_edited:
            self._checkpoint = Snapshot(model, self.loop, provenance, self.rng)

    def switch_program(self, program: Program, *, is_edited: bool = False) -> list[str]:
        """Switch to another program at a boundary; return the optimizers whose state starts empty.

        It continues with the next batch of the epoch; an edited one begins a new epoch.
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
            old.discard_update()  # it has noted backwards in the set-up
            if isinstance(error, (Exception, SystemExit)):  # exit() in a learner's loop must not end the kernel
                raise program.explain(error) from error
            raise
        self._statements.close()
        self._checkpoint, self._previous_program = checkpoint, old if is_edited else None
        if not is_edited:
            old.close()
        self._install(loop, 0 if is_edited else old.position(), old.program)
        return fresh

    def run(self, max_statements: int, ledger: Ledger | None = None, window: float = math.inf) -> None:
        """Run statements until an update is complete, ``max_statements`` at most; ``ledger`` counts bytes.

        Where an update takes more backward passes than ``window``, it also ends after each further one.
        """
        loop = self.loop
        loop.updated = False
        self.at_boundary = self.at_batch = False
        left, most = max_statements, max(window, loop.backwards)
        self._statement_began = time.perf_counter()
        try:
            with self.rng, loop.settings, ledger or nullcontext():
                for self.index in self._statements:  # noqa: B020 - an attribute, so that it is right at any moment
                    left -= 1
                    loop.reads_since_pause = 0
                    if ledger is not None:
                        ledger.mark(loop.program.statements[self.index].label)
                    self._statement_began = time.perf_counter()
                    self.at_batch = loop.backwards > most and not loop.updated
                    if loop.updated or not left or self.at_batch or self._statement_began > self.deadline:
                        break
                else:
                    self.done = self.at_boundary = True
        except BaseException as error:
            self.recover()
            if isinstance(error, (Exception, SystemExit)):  # exit() in a learner's loop must not end the kernel
                raise loop.program.explain(error) from error
            raise
        finally:
            self._statement_began = -math.inf
        self.statements_since_update = 0 if loop.updated else self.statements_since_update + max_statements - left
        if loop.updated:
            self.at_boundary = True
            if self.on_update is not None:
                self.on_update(loop)
            if loop.is_edited:
                self._checkpoint = Snapshot(self._model, loop, self._provenance, self.rng)
                self._previous_program = None
        elif not left and max_statements == MOST_STATEMENTS and not self.done:
            line = loop.program.statements[self.index].line
            self.recover()
            raise LoopError(line, f"{MOST_STATEMENTS:,} statements ran and no optimizer took a step", loop.program.text)

    def end_soon(self) -> bool:
        """End the run under way after its current statement; return whether that is likely to be soon."""
        self.deadline = -math.inf
        return time.perf_counter() - self._statement_began < _SHORT_S

    def _install(self, loop: BoundProgram, first_batch: int, old: Program | None = None) -> None:
        loop.discard_update()  # one cut short, or backwards in the set-up of another loop
        self.index = _counterpart(old, self.index, loop.program) if old and self.index >= 0 else loop.index
        self.loop = loop
        loop.read = first_batch
        self._statements: Generator[int, None, None] = loop.statements()
        self.at_boundary = True
        self.done = False
        self.statements_since_update = 0
        self._provenance.on_backward = loop.on_backward
        self._provenance.watch(loop.optimizers.values(), has_scaler=bool(loop.scalers))

    def recover(self) -> None:
        """Return to the last boundary if there is a copy of it, ready to run on from there."""
        self._statements.close()
        program, position = self.loop.program, self.loop.position()
        if self._checkpoint is not None:
            self._checkpoint.restore()
            position = self._checkpoint.position
            if self._previous_program is not None:  # the new text completed no update: restore the previous one
                self.loop.close()
                self.loop, self._previous_program = self._previous_program, None
                self._checkpoint = self._checkpoint if self.loop.is_edited else None
        self._install(self.loop, position, program)

    def close(self) -> None:
        """Take the hooks off the optimizers."""
        self._statements.close()
        self.loop.close()


def _counterpart(old: Program, index: int, new: Program) -> int:
    """Return the index of the statement in ``new`` with the same label and occurrence as in ``old``, -1 for none."""
    labels = [statement.label for statement in old.statements]
    earlier = labels[:index].count(labels[index])
    same = [i for i, statement in enumerate(new.statements) if statement.label == labels[index]]
    return same[min(earlier, len(same) - 1)] if same else -1
