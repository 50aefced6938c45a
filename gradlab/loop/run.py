"""Run trains a task with a recipe. Counterfactual is a copy of a Run that continues without the newest switch."""

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
_PATIENCE_S = 1.0  # seconds that an edited loop has to complete its update before another loop replaces it


class Run:
    """The training of a task by a recipe's loop: a Run executes the text of the loop and records its effects.

    ``task`` is a Task; ``recipe`` is a Recipe, or None for the default recipe with the task's ``lr``; ``seed``, a whole
    number, determines the weights and the loop's random numbers. Raises TypeError or ValueError for a bad argument.
    """

    def __init__(self, task: Any, recipe: Recipe | None = None, seed: int = 0) -> None:
        for name in ("name", "build", "batches", "loss_fn", "device"):
            if not hasattr(task, name):
                raise TypeError(f"Run: task must be a Task such as gradlab.tasks.digits(), got {task!r}")
        self.task = task
        self.seed = whole_number("Run: seed", seed, 0, LARGEST_SEED, allowed=_SEEDS, kind=ValueError)
        self.recipe = _checked(Recipe(lr=getattr(task, "lr", 0.1)) if recipe is None else recipe)
        self.watch_memory = False  # whether a Ledger counts the last update of each ``advance``, for ``watched``
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
        """The line of ``source`` that ran last, counted from 1; 0 before anything ran."""
        return self.statement.line

    @property
    def optimizer(self) -> torch.optim.Optimizer | None:
        """The loop's optimizer named ``optimizer``, or its first optimizer under another name; None if it has none."""
        optimizers = self.loop.optimizers
        return optimizers.get("optimizer") or next(iter(optimizers.values()), None)

    @property
    def updates(self) -> int:
        """Number of updates since the last reset."""
        return self.record.updates

    @property
    def watch_gradients(self) -> bool:
        """Whether to keep each batch's contribution to ``.grad`` for ``provenance.contributions()``."""
        return self._watch_gradients

    @watch_gradients.setter
    def watch_gradients(self, on: bool) -> None:
        self._watch_gradients = self.provenance.keeps_contributions = on

    def footprint(self) -> dict[str, int]:
        """Return the current bytes of "weights", "gradients" and "optimizer" (state)."""
        return footprint(self.model, self.loop.optimizers.values())

    def run_statement(self) -> int:
        """Run one statement and return its line; if the loop is done, only return the last line."""
        try:
            self._run_measured(1)
        finally:
            self._forget_failed_loop()
            self._recorder.flush()
        return self.line

    def step(self) -> int:
        """Run one statement; a deprecated alias of ``run_statement``."""
        warnings.warn("Run.step is now Run.run_statement", DeprecationWarning, stacklevel=2)
        return self.run_statement()

    def advance(
        self, updates: int | None = None, seconds: float | None = None, *, limit: float = inf, window: float = inf
    ) -> int:
        """Run whole updates; an update begun with ``run_statement`` is completed first and counts as one of them.

        Args:
            updates: The number of updates to run; either this or ``seconds`` must be given.
            seconds: Seconds during which new updates begin; at least one update runs.
            limit: Seconds after which to stop, if necessary within an update.
            window: Number of backward passes in an update beyond which each further pass counts as an update.

        Returns:
            The number of updates run. Between updates, labs that wait for the main thread are served.

        Raises:
            ValueError: If an argument is not allowed, or, as a LoopError, if a statement of the loop fails.
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
                with self.engine.rng:  # entered once for all updates of a slice
                    while True:
                        last = now >= end if updates is None else done == updates - 1
                        before = self.updates
                        (self._run_measured if last else self.engine.run)(MOST_STATEMENTS, window=window)
                        done += self.updates - before or self.engine.at_batch
                        now = time.perf_counter()
                        if last or self.engine.done or main_thread.is_wanted or now > slice_end:
                            break
                if not _torch.dispatch_mode_stack():  # a mode such as a Ledger would also count the labs' work
                    main_thread.serve()
                if (now := time.perf_counter()) > self.engine.deadline:
                    break
        finally:
            self._forget_failed_loop()
            self._recorder.flush()
        return done

    def complete_update(self) -> None:
        """Complete the current update; an edited loop that takes over a second returns to the update's beginning."""
        if self.engine.at_boundary:
            return
        before = self.updates
        self.advance(updates=1, limit=_PATIENCE_S if self.loop.is_edited else inf)
        if self.updates == before and not self.engine.done:
            self.engine.recover()
            self._forget_failed_loop()

    def switch(self, recipe: Recipe) -> None:
        """Switch to ``recipe`` after the current update; weights, ``.grad`` and an unchanged optimizer's state stay."""
        self._change_loop(_checked(recipe))

    def unswitched(self) -> Counterfactual:
        """Return a copy that continues without the next switch. Raises ValueError in an update or an edited loop."""
        if not self.engine.at_boundary or self.loop.is_edited:
            raise ValueError("Run.unswitched must be called between two updates of a recipe's loop")
        return Counterfactual(self.task, self.recipe, self.model, self.engine, self.updates)

    def edit(self, text: str) -> None:
        """After the current update, switch to a loop that the learner wrote; the loop begins a new epoch.

        Raises LoopError with the line if the text or its set-up is wrong, and keeps the previous loop then. If a
        statement fails later, the run returns to the start of the update or, in the first update, to the previous loop.
        """
        self._change_loop(text)

    def reset(self, weights: Sequence[float] | None = None, loop: Recipe | str | None = None) -> None:
        """Begin again with the same seed; raises LoopError if the loop's set-up fails, and changes nothing then.

        ``weights`` replaces the initial weights, with one number per element of the model's parameters. ``loop`` is a
        Recipe, or the text of a loop that the learner wrote; None keeps the current loop.
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
        self.engine = engine  # ``at_boundary`` is True between two updates, and ``done`` at the end of the loop
        self.watched: deque[tuple[int, list[MemoryPoint]]] = deque(maxlen=_UPDATES_KEPT)
        """The newest updates whose bytes a Ledger counted, oldest first, as (number of the update, its timeline)."""
        self.ledger: Ledger | None = None  # the Ledger of the newest update in ``watched``, or None
        self.loops: list[tuple[int, Recipe | str]] = [(0, loop)]
        """The loops since the last reset, as (number of updates before the loop, its Recipe or edited text)."""
        self.restarted_optimizers: list[str] = []  # names of those that started without state at the newest switch

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
            if ledger is not None:  # an interval without a statement comes after the last statement
                self.watched[-1] = self.watched[-1][0], [point for point in ledger.timeline if point.statement]

    def _open_ledger(self) -> Ledger:
        """Return the ledger of the current update; at its start, create the ledger with the tensors of the loop."""
        if self.ledger is None or self.engine.at_boundary or self.engine.at_batch:
            if self.watched and self.watched[-1][0] > self.updates:  # the timeline of an earlier batch of this update
                self.watched.pop()
            names = self.loop.namespace.values()
            self.ledger = Ledger(
                self.model,
                self.loop.optimizers.values(),
                [value for value in names if isinstance(value, Tensor) and not value.requires_grad],
            )
            self.ledger.current_statement = lambda: ""  # the engine marks the statements that ran
            self.watched.append((self.updates + 1, []))
        return self.ledger


def _checked(recipe: object) -> Recipe:
    if not isinstance(recipe, Recipe):
        raise TypeError(f"Run: recipe must be a gradlab.Recipe, got {recipe!r}")
    return recipe


class Counterfactual:
    """A copy of a run that continues with the loop from before a switch, while the run continues with the new loop.

    It has its own copies of the run's weights, ``.grad``, optimizer and scaler state, random state and position in the
    batches. An error ends the copy, but never the run.
    """

    def __init__(self, task: Any, recipe: Recipe, model: nn.Module, engine: Engine, updates: int) -> None:
        """Copy a run between two updates, after ``updates`` updates; an error while copying the model propagates."""
        self.task = task
        self.recipe = recipe  # the recipe with which the copy continues
        self.switched = ""  # the setting without the switch, such as "zero_grad on"
        self.begun = self.updates = updates  # numbers of updates: the run's when it was copied, and the copy's now
        self.ended = ""  # the reason for the end of the copy, or "" while it continues
        self.after_update: Callable[[], None] | None = None  # called after each update, as in Run
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
        self.record = self._writer.record  # the history of the copy, with the losses since it was made
        self._budget_ms = _BURST_BUDGET_MS

    def follow(self, updates: int, allowed: float) -> None:
        """Train up to update ``updates``, or end the copy; ``allowed`` ms are added to its budget of processor time."""
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
        except Exception as error:  # for example if memory runs out or the learner's model fails; the run continues
            self.end(f"it stopped with {type(error.__cause__ or error).__name__}")
        except BaseException:
            self.end("it was interrupted")
            raise

    def end(self, why: str) -> None:
        """End the copy, and release everything that training needs; the losses so far stay in ``record``."""
        if self.ended:
            return
        self.ended = why
        with suppress(Exception):  # reading a loss fails if its GPU has failed
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
