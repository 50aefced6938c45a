"""The Engine, and the BoundProgram that it runs: a Program with a namespace and a position in a task's batches.

An Engine runs single statements, switches programs, and restores a checkpoint if the learner's own program fails.
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

MOST_STATEMENTS = 200_000  # number of statements without a complete update after which a loop is stopped with an error
MOST_BATCHES = 10_000  # maximum number of batches that one statement may read; a loop in a function counts as one
_SHORT_S = 0.1  # seconds that a statement may have run and still be expected to end soon
EPOCHS = 10**9  # value of ``epochs`` for a loop, so high that the loop never ends by itself


class BoundProgram:
    """A Program with a namespace, which can continue in the middle of an epoch.

    The constructor runs the set-up (the statements before the loop) and catches no errors. ``statements`` completes an
    interrupted epoch by running the loop with ``epochs = 1`` and the remaining ``batches``, and then runs all epochs.
    """

    def __init__(self, program: Program, task: Any, model: nn.Module, *, is_edited: bool = False) -> None:
        self.is_edited = is_edited  # whether the learner wrote the program's text
        self.program = program
        self.reads_since_pause = 0
        self.read = 0  # number of batches of this epoch that have been read
        self.updated = False  # whether an update has been completed in the current or last ``Engine.run``
        self.losses: deque[Tensor] = deque(maxlen=MOST_BATCHES)
        self.backwards = 0  # number of backward passes since the newest update
        self.window = 1  # largest number of backward passes in an update so far, limited to ``LONGEST_WINDOW``
        self._task = task
        self._attempted = self._applied = self._inside_scaler = self._unscaled = self._skipped = False
        self._used_scale: float | None = None  # loss scale that the newest update used, or None without a scaler
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
        """The context in which the statements run; it confines the global settings that an edited text changes."""
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
        """Run the loop from batch ``read`` of an epoch on, and yield the index of each statement after it has run."""
        if first := self.read:
            self.namespace.update(batches=TrackedBatches(self._task.batches[first:], self._note_read, first), epochs=1)
            yield from self.program.loop(self.namespace)
        self.namespace.update(batches=TrackedBatches(self._task.batches, self._note_read), epochs=EPOCHS)
        yield from self.program.loop(self.namespace)

    def position(self) -> int:
        """Return the number of batches of the current epoch that have been read, or 0 at the end of an epoch."""
        return self.read % len(self._task.batches)

    def copy_optimizer_state_from(self, other: BoundProgram) -> list[str]:
        """Copy optimizer and scaler state from ``other``; return the names of optimizers that start without state."""
        fresh = []
        for name, optimizer in self.optimizers.items():
            old = other.optimizers.get(name)
            # A different learning rate alone does not discard the state.
            if type(old) is type(optimizer) and old.defaults | {"lr": 0} == optimizer.defaults | {"lr": 0}:
                optimizer.state.update(old.state)
            else:
                fresh.append(name)
        for name, scaler in self.scalers.items():
            if name in other.scalers and scaler.is_enabled() and other.scalers[name].is_enabled():
                scaler.load_state_dict(other.scalers[name].state_dict())
        return fresh

    def on_backward(self) -> None:
        """Complete an earlier update that lacks ``scaler.update()``; then record the loss of this backward pass."""
        if self._attempted:
            self._complete()
        self.backwards += 1
        if self._loss is not None:
            self.losses.append(self._loss)
        elif isinstance(loss := self.namespace.get("loss"), Tensor) and loss.numel() == 1:
            self.losses.append(loss.detach())
        self._loss = None

    def pop_update(self) -> tuple[list[Tensor], float | None, bool]:
        """Return the newest update's losses, loss scale or None, and whether its step was skipped; clear the losses."""
        losses = list(self.losses)
        self.window = min(max(self.window, self.backwards), LONGEST_WINDOW)
        self.losses.clear()
        self.backwards = 0
        return losses, self._used_scale, self._skipped

    def scale(self) -> float | None:
        """Return the current loss scale, or None if the loop has no scaler."""
        scaler = next(iter(self.scalers.values()), None)
        return None if scaler is None else float(scaler.get_scale())

    def scale_in_grad(self) -> float:
        """Return the loss scale by which the newest contributions to ``.grad`` are multiplied, or 1.0 if unscaled."""
        return (self.scale() or 1.0) if self.losses and not self._unscaled else 1.0

    def discard_update(self) -> None:
        """Discard the update that an error interrupted, so that the next update can begin."""
        self.losses.clear()
        self.backwards, self._loss = 0, None
        self._attempted = self._applied = self._unscaled = False
        for scaler in self.scalers.values():
            if scaler.is_enabled():  # without update(), unscale_() may not be called again
                getattr(scaler, "_per_optimizer_states", {}).clear()

    def close(self) -> None:
        """Remove the hooks from the optimizers."""
        for handle in self._handles:
            handle.remove()

    def _note_read(self, position: int) -> None:
        """Record the number of batches read in the epoch. Raises RuntimeError if a single statement reads too many."""
        self.read = position
        self.reads_since_pause += 1
        if self.reads_since_pause > MOST_BATCHES:
            self.reads_since_pause = 0
            raise RuntimeError(
                f"one statement read {MOST_BATCHES:,} batches: the loop must be at the top level of the text, "
                "not in a function or a with block"
            )

    def _record_loss(self, *args: Any, **kwargs: Any) -> Any:
        """Return the task's loss and record it. In a recipe's loop, raise TypeError if it is not a single value."""
        loss = self._task.loss_fn(*args, **kwargs)
        if isinstance(loss, Tensor) and loss.numel() == 1:
            self._loss = loss.detach() if loss.requires_grad else self._loss
        elif not self.is_edited:  # the learner's own loop may reduce a loss of several values to one
            is_tensor = isinstance(loss, Tensor)
            got = f"tensor of shape {tuple(loss.shape)}" if is_tensor else f"value of type {type(loss).__name__}"
            raise TypeError(f"Task: loss_fn must return a tensor with one value, got a {got}")
        return loss

    def _after_step(self, optimizer: object, args: object, kwargs: object) -> None:
        self._applied = True
        if not self._inside_scaler:
            self._complete()

    def _watch_scaler(self, scaler: torch.amp.GradScaler) -> None:
        """Wrap three methods of ``scaler`` to detect skipped steps, which do not call the optimizer's hooks."""
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

        scaler.unscale_ = watched_unscale  # type: ignore[method-assign]
        scaler.step, scaler.update = watched_step, watched_update  # type: ignore[method-assign]

    def _complete(self) -> None:
        self.updated = True
        self._skipped = not self._applied
        self._attempted = self._applied = False


class Engine:
    """The executor of a Program, which begins at batch ``first_batch`` of an epoch.

    At a boundary, that is, between two updates, the engine can switch to another program. If the learner wrote the
    program (``is_edited``), the training state is copied at each boundary, and the copy is restored after an error.
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
        self.statements_since_update = 0  # counted from the newest update or, if later, from the switch to this program
        self.deadline = math.inf
        """The time, by ``time.perf_counter()``, after which ``run`` returns once the current statement has ended."""
        self._statement_began = -math.inf
        self.index = -1  # index of the statement that ran last, or -1 before any has run
        self.at_batch = False  # whether the last ``run`` ended after a backward pass, within an update
        self._checkpoint: Callable[[], int] | None = None
        self._previous_program: BoundProgram | None = None
        with self.rng:
            self._install(BoundProgram(program, task, model, is_edited=is_edited), first_batch)
        if is_edited:
            self._checkpoint = self._copy_state()

    def switch_program(self, program: Program, *, is_edited: bool = False) -> list[str]:
        """Switch to ``program`` between two updates; return the names of the optimizers that start without state.

        The new program continues with the next batch of the epoch or, if the learner wrote it, begins a new epoch.
        If the set-up of the new program fails, LoopError is raised, and the previous program stays.
        """
        old = self.loop
        checkpoint = self._copy_state() if is_edited else None
        try:
            with self.rng:
                loop = BoundProgram(program, self._task, self._model, is_edited=is_edited)
            fresh = loop.copy_optimizer_state_from(old)
        except BaseException as error:
            if checkpoint is not None:
                checkpoint()
            old.discard_update()  # drops backward passes of the failed set-up, which ``old`` has recorded
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
        """Run statements until an update is complete, at most ``max_statements``, and let ``ledger`` count the bytes.

        In an update of more than ``window`` backward passes, ``run`` also returns after each further pass, and in any
        case after ``deadline``. Raises LoopError if a statement fails or MOST_STATEMENTS run without an update.
        """
        loop = self.loop
        loop.updated = False
        self.at_boundary = self.at_batch = False
        left, most = max_statements, max(window, loop.backwards)
        self._statement_began = time.perf_counter()
        try:
            with self.rng, loop.settings, ledger or nullcontext():
                for self.index in self._statements:  # noqa: B020 - an attribute, so that it is always up to date
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
                self._checkpoint = self._copy_state()
                self._previous_program = None
        elif not left and max_statements == MOST_STATEMENTS and not self.done:
            line = loop.program.statements[self.index].line
            self.recover()
            raise LoopError(line, f"{MOST_STATEMENTS:,} statements ran and no optimizer took a step", loop.program.text)

    def end_soon(self) -> bool:
        """Let ``run`` end after the current statement, and return whether this statement is likely to end soon."""
        self.deadline = -math.inf
        return time.perf_counter() - self._statement_began < _SHORT_S

    def _copy_state(self) -> Callable[[], int]:
        """Copy the training state. The returned function restores it and returns the restored position in the epoch."""
        loop, rng, provenance = self.loop, self.rng, self._provenance
        restore_state = copy_state([self._model, *loop.optimizers.values(), *loop.scalers.values()])
        random, histories, position = rng.state(), provenance.copy_histories(), loop.position()

        def restore() -> int:
            rng.set_state(random)
            restore_state()
            provenance.restore_histories(histories)
            return position

        return restore

    def _install(self, loop: BoundProgram, first_batch: int, old: Program | None = None) -> None:
        loop.discard_update()  # drops an interrupted update, or backward passes of another loop's set-up
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
        """Restore the last checkpoint, if any, and the program that ran when it was made; prepare ``run`` to go on."""
        self._statements.close()
        program, position = self.loop.program, self.loop.position()
        if self._checkpoint is not None:
            position = self._checkpoint()
            if self._previous_program is not None:  # the new text completed no update: restore the previous program
                self.loop.close()
                self.loop, self._previous_program = self._previous_program, None
                self._checkpoint = self._checkpoint if self.loop.is_edited else None
        self._install(self.loop, position, program)

    def close(self) -> None:
        """Stop the program, and remove the hooks from the optimizers."""
        self._statements.close()
        self.loop.close()


def _counterpart(old: Program, index: int, new: Program) -> int:
    """Return the index of the statement in ``new`` with the same label as ``old.statements[index]``, or -1 if none."""
    labels = [statement.label for statement in old.statements]
    earlier = labels[:index].count(labels[index])
    same = [i for i, statement in enumerate(new.statements) if statement.label == labels[index]]
    return same[min(earlier, len(same) - 1)] if same else -1  # same occurrence, or the last if ``new`` has fewer
