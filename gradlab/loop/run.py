"""Run, the training of a task, and Counterfactual, a copy of a Run that continues with the previous loop."""

from __future__ import annotations

import copy
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf, isfinite
from typing import Any

import torch
from torch import Tensor, nn

from .. import _torch
from .._checks import LARGEST_FLOAT, LARGEST_SEED, number, require_trainable, whole_number
from .._process import RandomStream, main_thread
from ..gradients import Provenance
from ..memory import Ledger, MemoryPoint, footprint
from .engine import MOST_STATEMENTS, BoundProgram, Engine
from .history import History, HistoryWriter
from .program import Program, Statement
from .recipe import Recipe

_SEEDS = "a whole number, 0 to 2**32 - 1"
_SECONDS = "a finite number from 0"
_UPDATES_KEPT = 3  # number of the newest updates whose memory timelines are kept
_SLICE_S = 0.05  # seconds between two checks for work that waits for the main thread
_BURST_BUDGET_MS = 500.0  # maximum processor time that a Counterfactual may save up to catch up after a pause
_PATIENCE_S = 1.0  # seconds that a learner's loop gets to complete an update before a switch to another loop


class Run:
    """The training of a task: a Run executes the text of a loop, at first a recipe's, and records the effects.

    ``task`` is a Task. ``recipe`` is a Recipe; None means the default recipe with the task's ``lr``. ``seed``, a whole
    number, determines the weights and the random numbers. Raises TypeError or ValueError for an invalid argument.
    """

    def __init__(self, task: Any, recipe: Recipe | None = None, seed: int = 0) -> None:
        for name in ("name", "build", "batches", "loss_fn", "device"):
            if not hasattr(task, name):
                raise TypeError(f"Run: task must be a Task such as gradlab.tasks.digits(), got {task!r}")
        self.task = task
        self.seed = whole_number("Run: seed", seed, 0, LARGEST_SEED, allowed=_SEEDS, kind=ValueError)
        self.recipe = _checked(Recipe(lr=getattr(task, "lr", 0.1)) if recipe is None else recipe)
        self.watch_memory = False  # whether a Ledger counts the last update of ``advance`` and adds it to ``watched``
        self.after_update: Callable[[], None] | None = None
        """Called after each complete update; it must change neither the model nor the random state."""
        self._watch_gradients = False
        _torch.delay_dynamo()
        self._start(self.recipe)

    @property
    def loop(self) -> BoundProgram:
        """The current program, with its namespace, optimizers and scalers."""
        return self.engine.loop

    @property
    def source(self) -> str:
        """The text of the current loop."""
        return self.loop.program.text

    @property
    def statement(self) -> Statement:
        """The statement that ran last; its line is 0 before any statement has run."""
        index = self.engine.index
        return self.loop.program.statements[index] if index >= 0 else Statement(0, 0, "")

    @property
    def line(self) -> int:
        """The line of ``source`` that ran last, counted from 1, or 0 before any statement has run."""
        return self.statement.line

    @property
    def optimizer(self) -> torch.optim.Optimizer | None:
        """The loop's optimizer named ``optimizer``, otherwise the loop's first optimizer, or None if there is none."""
        optimizers = self.loop.optimizers
        return optimizers.get("optimizer") or next(iter(optimizers.values()), None)

    @property
    def updates(self) -> int:
        """The number of updates that have been completed since the last reset."""
        return self.record.updates

    @property
    def watch_gradients(self) -> bool:
        """Whether to keep each batch's contribution to ``.grad`` for ``provenance.contributions()``."""
        return self._watch_gradients

    @watch_gradients.setter
    def watch_gradients(self, on: bool) -> None:
        self._watch_gradients = self.provenance.keeps_contributions = on

    def footprint(self) -> dict[str, int]:
        """Return a dict with the bytes that "weights", "gradients" and "optimizer" (its state) take up now."""
        return footprint(self.model, self.loop.optimizers.values())

    def run_statement(self) -> int:
        """Run the next statement, unless the loop has ended, and return ``line``. Raises LoopError if it fails."""
        try:
            self._run_measured(1)
        finally:
            self._forget_failed_loop()
            self._recorder.flush()
        return self.line

    def step(self) -> int:
        """Do the same as ``run_statement``, under a deprecated name."""
        warnings.warn("Run.step is now Run.run_statement", DeprecationWarning, stacklevel=2)
        return self.run_statement()

    def advance(
        self, updates: int | None = None, seconds: float | None = None, *, limit: float = inf, window: float = inf
    ) -> int:
        """Run whole updates, and answer labs between them; an update begun with ``run_statement`` counts as the first.

        Args:
            updates: The number of updates to run; either this or ``seconds`` must be given.
            seconds: The time in which new updates begin, in seconds; at least one update runs.
            limit: The time after which to stop, even within an update, in seconds.
            window: Number of backward passes in an update beyond which each further pass counts as an update.

        Returns:
            The number of updates that were run.

        Raises:
            ValueError: If an argument is not allowed, or (the subclass LoopError) if a statement of the loop fails.
        """
        if (updates is None) == (seconds is None):
            raise ValueError(f"Run.advance: give either updates or seconds, got {updates=}, {seconds=}")
        if updates is not None:
            updates = whole_number("Run.advance: updates", updates, 0, kind=ValueError)
        else:
            seconds = number("Run.advance: seconds", seconds, 0, LARGEST_FLOAT, allowed=_SECONDS, kind=ValueError)
        began = now = time.perf_counter()
        end, done, last = began + (seconds or 0.0), 0, updates == 0
        self.engine.deadline = began + limit
        try:
            while not (last or self.engine.done):
                slice_end = min(now + _SLICE_S, self.engine.deadline)
                with self.engine.rng:  # entering the stream only once per slice saves time
                    while True:
                        last = now >= end if updates is None else done == updates - 1
                        before = self.updates
                        (self._run_measured if last else self.engine.run)(MOST_STATEMENTS, window=window)
                        done += self.updates - before or self.engine.at_batch
                        now = time.perf_counter()
                        if last or self.engine.done or main_thread.is_wanted or now > slice_end:
                            break
                if not _torch.dispatch_mode_stack():  # an active Ledger would also count the labs' work
                    main_thread.serve()
                if (now := time.perf_counter()) > self.engine.deadline:
                    break
        finally:
            self._forget_failed_loop()
            self._recorder.flush()
        return done

    def complete_update(self) -> None:
        """Complete the current update, or return to its start if a learner's loop takes more than a second."""
        if self.engine.at_boundary:
            return
        before = self.updates
        self.advance(updates=1, limit=_PATIENCE_S if self.loop.is_edited else inf)
        if self.updates == before and not self.engine.done:
            self.engine.recover()
            self._forget_failed_loop()

    def switch(self, recipe: Recipe) -> None:
        """Switch to ``recipe`` after the current update; keep weights, ``.grad`` and an unchanged optimizer's state."""
        self._change_loop(_checked(recipe))

    def unswitched(self) -> Counterfactual:
        """Return a copy that keeps the current recipe. Raises ValueError within an update and in a learner's loop."""
        if not self.engine.at_boundary or self.loop.is_edited:
            raise ValueError("Run.unswitched must be called between two updates of a recipe's loop")
        return Counterfactual(self.task, self.recipe, self.model, self.engine, self.updates)

    def edit(self, text: str) -> None:
        """Switch to ``text``, a loop that the learner wrote, after the current update, and begin a new epoch.

        If the text is not valid, or a statement before the loop fails, LoopError is raised and the previous loop stays.
        If a statement fails later, the run returns to the start of the update or, in the first one, to the old loop.
        """
        self._change_loop(text)

    def reset(self, weights: Sequence[float] | None = None, loop: Recipe | str | None = None) -> None:
        """Begin again with the same seed. If the loop's set-up fails, LoopError is raised, and nothing changes.

        ``weights``, one number for each element of the model's parameters, replaces the initial weights. ``loop`` is a
        Recipe, or the text of a loop that the learner wrote. None keeps the current loop.
        """
        start = None if weights is None else self._checked_weights(weights)
        loop = self.loops[-1][1] if loop is None else loop
        engine, provenance = self.engine, self.provenance
        self._start(loop if isinstance(loop, str) else _checked(loop), start)
        engine.close()
        provenance.close()

    def close(self) -> None:
        """Remove every hook from the model and the optimizers."""
        self.engine.close()
        self.provenance.close()

    def _program(self, loop: Recipe | str) -> Program:
        return Program(loop.source(self.task.batches[0]) if isinstance(loop, Recipe) else loop)

    def _start(self, loop: Recipe | str, weights: tuple[float, ...] | None = None) -> None:
        program = self._program(loop)
        model = self.task.build(self.seed)
        require_trainable("Run", self.task.name, [model], "let the builder run the model once, model(x)")
        if weights is not None:
            with torch.no_grad():
                nn.utils.vector_to_parameters(torch.tensor(weights, device=self.task.device), model.parameters())
        recorder = HistoryWriter(model.parameters())
        provenance = Provenance(model.named_parameters())
        provenance.keeps_contributions = self._watch_gradients
        provenance.on_step = recorder.before_step
        rng = RandomStream(self.seed, cuda=self.task.device.startswith("cuda"), compiled=_torch.is_compiled(model))
        try:
            engine = Engine(program, self.task, model, provenance, rng, is_edited=isinstance(loop, str))
        except (Exception, SystemExit) as error:
            raise program.explain(error) from error
        engine.on_update = self._note_update
        self.recipe = loop if isinstance(loop, Recipe) else self.recipe
        self.start_weights = weights  # the ``weights`` of the last ``reset``, or None
        self.model: nn.Module = model
        self.provenance = provenance
        self._recorder, self._newest_loop = recorder, engine.loop
        self.record: History = recorder.record  # the history since the last reset
        self.engine = engine  # ``engine.at_boundary`` is True between two updates, ``engine.done`` after the loop
        self.watched: deque[tuple[int, list[MemoryPoint]]] = deque(maxlen=_UPDATES_KEPT)
        """The newest updates whose bytes a Ledger counted, oldest first, as (number of the update, its timeline)."""
        self.ledger: Ledger | None = None  # the Ledger of the newest update in ``watched``, or None
        self.loops: list[tuple[int, Recipe | str]] = [(0, loop)]
        """The loops since the last reset, as (number of updates before the loop, its Recipe or edited text)."""
        self.restarted_optimizers: list[str] = []  # names of optimizers without their old state since the last switch

    def _note_update(self, loop: BoundProgram) -> None:
        self._recorder.updated(*loop.pop_update())
        if self.after_update is not None:
            self.after_update()

    def _checked_weights(self, weights: Sequence[float]) -> tuple[float, ...]:
        count = sum(param.numel() for param in self.model.parameters())
        values = tuple(weights) if isinstance(weights, Sequence) else (weights,)
        numbers = all(isinstance(w, (int, float)) and not isinstance(w, bool) and isfinite(w) for w in values)
        if len(values) != count or not numbers:
            raise ValueError(f"Run.reset: weights must be {count} finite numbers, got {str(weights)[:80]}")
        return tuple(float(w) for w in values)

    def _change_loop(self, loop: Recipe | str) -> None:
        program = self._program(loop)
        self.complete_update()
        edited = self.loop.is_edited
        self.restarted_optimizers = self.engine.switch_program(program, is_edited=isinstance(loop, str))
        changes = ["your own loop"]
        if isinstance(loop, Recipe):
            changes = loop.changes_from(self.recipe) + ["back to the recipe's loop"] * edited
            self.recipe = loop
        self.record.mark_switch(", ".join(changes) or "the same recipe")
        self.loops.append((self.updates, loop))
        self._newest_loop = self.loop

    def _forget_failed_loop(self) -> None:
        """Remove the newest loop from ``loops`` if it failed in its first update and the engine has replaced it."""
        if self.loop is not self._newest_loop:
            self.loops, self._newest_loop = self.loops[:-1], self.loop

    def _run_measured(self, max_statements: int, window: float = inf) -> None:
        self.provenance.measure = True
        ledger = self._open_ledger() if self.watch_memory else None
        try:
            self.engine.run(max_statements, ledger, window)
        finally:
            self.provenance.measure = False
            if ledger is not None:  # points without a statement belong to the time after the last statement
                self.watched[-1] = self.watched[-1][0], [point for point in ledger.timeline if point.statement]

    def _open_ledger(self) -> Ledger:
        """Return the Ledger of the current update; when an update begins, create it with the tensors of the loop."""
        if self.ledger is None or self.engine.at_boundary or self.engine.at_batch:
            if self.watched and self.watched[-1][0] > self.updates:  # drop the timeline of an earlier batch
                self.watched.pop()
            names = self.loop.namespace.values()
            self.ledger = Ledger(
                self.model,
                self.loop.optimizers.values(),
                [value for value in names if isinstance(value, Tensor) and not value.requires_grad],
            )
            self.ledger.current_statement = lambda: ""  # the engine labels each statement that ran
            self.watched.append((self.updates + 1, []))
        return self.ledger


def _checked(recipe: object) -> Recipe:
    if not isinstance(recipe, Recipe):
        raise TypeError(f"Run: recipe must be a gradlab.Recipe, got {recipe!r}")
    return recipe


class Counterfactual:
    """A copy of a Run that continues with the previous loop after the Run itself has switched to a new loop.

    The copy includes the weights, ``.grad``, optimizer and scaler state, random state and position in the batches. An
    error ends the Counterfactual, but never the Run.
    """

    def __init__(self, task: Any, recipe: Recipe, model: nn.Module, engine: Engine, updates: int) -> None:
        """Copy a run after exactly ``updates`` complete updates. An error from copying the model is not caught."""
        self.task = task
        self.recipe = recipe  # the recipe with which the copy continues
        self.switched = ""  # the setting that the copy keeps, such as "zero_grad on"
        self.begun = self.updates = updates  # number of completed updates: at the time of the copy, and now
        self.ended = ""  # the reason why the copy has ended, or "" while it continues
        self.after_update: Callable[[], None] | None = None  # called after each update of the copy
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
        self._writer = HistoryWriter(updates=updates)
        self.record = self._writer.record  # the losses of the copy, from the first update after ``begun`` on
        self._budget_ms = _BURST_BUDGET_MS

    def follow(self, updates: int, allowed: float) -> None:
        """Add ``allowed`` ms of processor time; train up to update ``updates``, or end the copy if no time is left."""
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
                        self.end("continuing would take more than a tenth of a processor core")
            self._write()
        except Exception as error:  # memory may run out, or the learner's model may fail, but the run must continue
            self.end(f"it stopped with {type(error.__cause__ or error).__name__}")
        except BaseException:
            self.end("it was interrupted")
            raise

    def end(self, why: str) -> None:
        """End the copy for the reason ``why``, and free the model and the loop. ``record`` keeps the losses so far."""
        if self.ended:
            return
        self.ended = why
        with suppress(Exception):  # losses cannot be read if the GPU has failed
            self._write()
        self._engine.close()
        self._provenance.close()
        loop = self._engine.loop
        for contents in (loop.namespace, loop.losses, loop.optimizers, loop.scalers):
            contents.clear()
        self.model = nn.Module()
        del self._engine, self._provenance

    def _note_update(self, loop: BoundProgram) -> None:
        losses, _, skipped = loop.pop_update()
        self.updates += 1
        self._writer.updated(losses, None, skipped)
        if self.after_update is not None:
            self.after_update()

    def _write(self) -> None:
        self._writer.flush()
        if self.record.broken is not None:
            self.end(f"its loss is inf or NaN from update {self.record.broken:,}")
