"""The code you see is the code that runs: Run, plain ``exec`` of its text and a hand-written loop agree to the bit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from covering import combinations, covering
from points import points
from torch import Tensor, nn

from gradlab import Recipe, Run, tasks
from gradlab.tasks import Task

SWITCHES: dict[str, tuple[Any, ...]] = {
    "zero_grad": (True, False),
    "set_to_none": (True, False),
    "divide_loss": (True, False),
    "amp": ("off", "bf16", "fp16"),
    "clip": (None, 0.5),
    "optimizer": ("sgd", "momentum", "adam", "adamw"),
    "accumulate": (1, 2, 3, 5, 16),
}
THREES = ("zero_grad", "set_to_none", "accumulate", "divide_loss", "amp")
SEED = 3


def short_digits() -> Task:
    """Seven small batches, the last smaller still, so that windows of 2, 3, 5 and 16 all end in a partial one."""
    task = tasks.digits(batch=16, device="cpu")
    x, y = task.batches[6]
    return replace(task, batches=[*task.batches[:6], (x[:5], y[:5])])


TASKS = {
    "line": tasks.line(device="cpu"),
    "points": points(batch=43),  # 7 batches of 43 and a smaller one
    "digits": short_digits(),
}


FACTORS = {**SWITCHES, "lr": (None, 1e-3, 7.0), "task": tuple(TASKS)}
"""A learning rate is the task's own, at which it learns, or one that creeps or blows up."""


def case(task: str, lr: float | None, **switches: Any) -> tuple[str, Recipe]:
    return task, Recipe(**switches, lr=lr or TASKS[task].lr)


ROWS = covering(FACTORS, THREES)
CASES = [case(**row) for row in ROWS]


def label(case: tuple[str, Recipe]) -> str:
    name, r = case
    flags = "".join(letter for letter, on in zip("znd", (r.zero_grad, r.set_to_none, r.divide_loss), strict=True) if on)
    return f"{name}-{flags or 'none'}-{r.amp}-clip{r.clip}-{r.optimizer}-acc{r.accumulate}-lr{r.lr:g}"


@dataclass
class End:
    """The end of a training run: all weights, all gradients, and every loss on the way."""

    weights: list[Tensor]
    grads: list[Tensor | None]
    losses: list[Tensor]

    @classmethod
    def of(cls, model: nn.Module, losses: list[Tensor]) -> End:
        copies = [p.detach().clone() for p in model.parameters()]
        return cls(copies, [None if p.grad is None else p.grad.clone() for p in model.parameters()], losses)


def same_bits(a: Tensor | None, b: Tensor | None) -> bool:
    """Compare bit patterns, so that NaN equals NaN and 0.0 is not -0.0."""
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and a.dtype == b.dtype and a.numpy().tobytes() == b.numpy().tobytes()


def assert_same(a: End, b: End) -> None:
    for what in ("weights", "grads", "losses"):
        left, right = getattr(a, what), getattr(b, what)
        assert len(left) == len(right), f"{len(left)} and {len(right)} {what}"
        for i, (p, q) in enumerate(zip(left, right, strict=True)):
            same = same_bits(p, q)
            assert same, f"{what}[{i}] differ: {p} and {q}"


def keeping_losses(task: Task) -> tuple[Task, list[Tensor]]:
    """The task with a loss function that also keeps each loss."""
    losses: list[Tensor] = []

    def loss_fn(output: Tensor, y: Tensor) -> Tensor:
        loss = task.loss_fn(output, y)
        losses.append(loss.detach())
        return loss

    return replace(task, loss_fn=loss_fn), losses


def by_exec(task: Task, recipe: Recipe, epochs: int) -> End:
    """Plain ``exec`` of the recipe's text in a namespace that holds only what the text may use."""
    task, losses = keeping_losses(task)
    model = task.build(SEED)
    namespace = {
        "torch": torch,
        "model": model,
        "loss_fn": task.loss_fn,
        "batches": task.batches,
        "device": task.device,
        "epochs": epochs,
    }
    exec(recipe.source(), namespace)
    return End.of(model, losses)


def updates_of(task: Task, recipe: Recipe, epochs: int) -> int:
    return epochs * math.ceil(len(task.batches) / recipe.accumulate)


def epochs_of(name: str) -> int:
    return 1 if name == "digits" else 2


def by_run(task: Task, recipe: Recipe, epochs: int) -> tuple[End, Run]:
    """A Run in several slices, as a player would, without an instrument."""
    task, losses = keeping_losses(task)
    run = Run(task, recipe, seed=SEED)
    wanted = updates_of(task, recipe, epochs)
    for size in (1, 0, 2, wanted):
        run.advance(updates=min(size, wanted - run.updates))
    assert run.updates == wanted
    return End.of(run.model, losses), run


def by_statements(task: Task, recipe: Recipe, epochs: int) -> tuple[End, Run]:
    """A Run statement by statement, under all instruments, which are read after each update."""
    task, losses = keeping_losses(task)
    run = Run(task, recipe, seed=SEED)
    run.watch_memory = run.watch_gradients = True
    while run.updates < updates_of(task, recipe, epochs):
        run.run_statement()
        if run.engine.at_boundary:
            run.provenance.contents()
            run.provenance.contributions()
    assert run.watched[-1][1]
    return End.of(run.model, losses), run


def new_optimizer(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    """The optimizer that a recipe asks for, written down a second time."""
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), lr=recipe.lr)
    if recipe.optimizer == "momentum":
        return torch.optim.SGD(model.parameters(), lr=recipe.lr, momentum=0.9)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[recipe.optimizer](model.parameters(), lr=recipe.lr)


@dataclass
class ByHand:
    """A training loop with the switches as plain ifs: shares no line with ``Recipe.source``."""

    task: Task
    model: nn.Module
    recipe: Recipe
    losses: list[Tensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.optimizer = new_optimizer(self.recipe, self.model)
        self.scaler = torch.amp.GradScaler("cpu")

    def train(self, batches: list[tuple[Tensor, Tensor]]) -> None:
        """One pass over these batches."""
        r = self.recipe
        dtype = {"off": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[r.amp]
        for start in range(0, len(batches), r.accumulate):
            window = batches[start : start + r.accumulate]
            if r.zero_grad:
                self.optimizer.zero_grad(set_to_none=r.set_to_none)
            for x, y in window:
                with torch.autocast("cpu", dtype=dtype, enabled=r.amp != "off"):
                    loss = self.task.loss_fn(self.model(x), y)
                self.losses.append(loss.detach())
                if r.divide_loss and r.accumulate > 1:
                    loss = loss / len(window)
                (self.scaler.scale(loss) if r.amp == "fp16" else loss).backward()
            if r.clip is not None:
                if r.amp == "fp16":
                    self.scaler.unscale_(self.optimizer)
                nn.utils.clip_grad_norm_(self.model.parameters(), r.clip)
            if r.amp == "fp16":
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()

    def switch(self, recipe: Recipe) -> None:
        """Switch as by hand: the same optimizer keeps its state, another one starts without."""
        if recipe.optimizer == self.recipe.optimizer:
            for group in self.optimizer.param_groups:
                group["lr"] = recipe.lr
        else:
            self.optimizer = new_optimizer(recipe, self.model)
        if recipe.amp != "fp16" or self.recipe.amp != "fp16":
            self.scaler = torch.amp.GradScaler("cpu")
        self.recipe = recipe

    def end(self) -> End:
        return End.of(self.model, self.losses)


# The cases


def test_the_cases_cover_each_two_values_and_some_threes() -> None:
    assert len({recipe for _, recipe in CASES}) == len(CASES)
    for combination in combinations(FACTORS, THREES):
        assert any(combination.items() <= row.items() for row in ROWS), combination


def test_the_last_window_is_a_partial_one() -> None:
    assert [len(TASKS[name].batches) % n for name in TASKS for n in (3, 5)] == [2, 3, 1, 2, 1, 2]
    assert all(len(task.batches[-1][0]) < len(task.batches[0][0]) for name, task in TASKS.items() if name != "line")


# Run, exec and a loop by hand


@pytest.mark.parametrize("case", CASES, ids=label)
def test_run_and_exec_and_hand_end_in_the_same_bits(case: tuple[str, Recipe]) -> None:
    name, recipe = case
    task, epochs = TASKS[name], epochs_of(name)
    plain = by_exec(task, recipe, epochs)
    hand = ByHand(task, task.build(SEED), recipe)
    for _ in range(epochs):
        hand.train(task.batches)
    assert_same(plain, hand.end())
    watched, run = by_statements(task, recipe, epochs)
    assert_same(plain, watched)
    assert_record_tells(run, plain.losses)
    ran, run = by_run(task, recipe, epochs)
    assert_same(plain, ran)
    assert_record_tells(run, plain.losses)


def assert_record_tells(run: Run, losses: list[Tensor]) -> None:
    """The record's loss is the mean over the micro-batches of each update, neither divided nor scaled."""
    size, n = len(run.task.batches), run.recipe.accumulate
    windows = [losses[e + s : min(e + s + n, e + size)] for e in range(0, len(losses), size) for s in range(0, size, n)]
    assert list(run.record.rows["update"]) == list(range(1, len(windows) + 1))
    for recorded, window in zip(run.record.rows["loss"], windows, strict=True):
        expected = sum(float(loss) for loss in window) / len(window)
        both_infinite = not (math.isfinite(recorded) or math.isfinite(expected))
        assert recorded == pytest.approx(expected, rel=1e-12) or both_infinite


# Switching

BASE = Recipe()
PAIRS = {
    "zero_grad off": (BASE, BASE.replace(zero_grad=False)),
    "zero_grad on again": (BASE.replace(zero_grad=False), BASE),
    "zeros to None": (BASE.replace(set_to_none=False), BASE),
    "lr of Adam": (BASE.replace(optimizer="adam", lr=0.01), BASE.replace(optimizer="adam", lr=0.002)),
    "lr of momentum": (BASE.replace(optimizer="momentum", lr=0.01), BASE.replace(optimizer="momentum", lr=0.002)),
    "Adam to AdamW": (BASE.replace(optimizer="adam", lr=0.01), BASE.replace(optimizer="adamw", lr=0.01)),
    "momentum to SGD": (BASE.replace(optimizer="momentum", lr=0.01), BASE.replace(lr=0.01)),
    "SGD to momentum": (BASE.replace(lr=0.01), BASE.replace(optimizer="momentum", lr=0.01)),
    "AMP off to fp16": (BASE, BASE.replace(amp="fp16")),
    "fp16 to off, not cleared": (BASE.replace(amp="fp16"), BASE.replace(zero_grad=False)),
    "fp16 to fp16 with clip": (BASE.replace(amp="fp16"), BASE.replace(amp="fp16", clip=0.1)),
    "bf16 to fp16": (BASE.replace(amp="bf16"), BASE.replace(amp="fp16", optimizer="adam")),
    "window of 2 to 3": (BASE.replace(accumulate=2), BASE.replace(accumulate=3)),
    "window of 3 to batches, not cleared": (BASE.replace(accumulate=3), BASE.replace(zero_grad=False)),
    "batches to window of 5": (BASE, BASE.replace(accumulate=5, divide_loss=False)),
    "divide_loss off": (BASE.replace(accumulate=2), BASE.replace(accumulate=2, divide_loss=False)),
}


def each_switched(*others: Sequence[Any]) -> list[Any]:
    """Each pair once, beside each combination of the others once or oftener."""
    beside = [*itertools.product(*others)]
    number = max(len(PAIRS), len(beside))
    rows = zip(range(number), itertools.cycle(PAIRS.items()), itertools.cycle(beside))
    return [pytest.param(pair, *values, id="-".join(map(str, (name, *values)))) for _, (name, pair), values in rows]


def written_by_hand(task: Task, first: Recipe, second: Recipe, after: int, epochs: int) -> ByHand:
    """Run ``first`` for ``after`` updates, then ``second`` to the end of the epoch and for ``epochs`` more."""
    hand = ByHand(task, task.build(SEED), first)
    per_epoch = math.ceil(len(task.batches) / first.accumulate)
    for _ in range(after // per_epoch):
        hand.train(task.batches)
    k = after % per_epoch * first.accumulate
    hand.train(task.batches[:k])
    hand.switch(second)
    for part in ([task.batches[k:]] if k else []) + [task.batches] * epochs:
        hand.train(part)
    return hand


def updates_after(task: Task, first: Recipe, second: Recipe, after: int, epochs: int) -> int:
    k = after % math.ceil(len(task.batches) / first.accumulate) * first.accumulate
    rest = math.ceil((len(task.batches) - k) / second.accumulate) if k else 0
    return rest + epochs * math.ceil(len(task.batches) / second.accumulate)


@pytest.mark.parametrize(("pair", "name", "after"), each_switched([*TASKS], [0, 1, 2, 8, 9]))
def test_a_switch_equals_the_same_switch_by_hand(pair: tuple[Recipe, Recipe], name: str, after: int) -> None:
    first, second = pair
    task, losses = keeping_losses(TASKS[name])
    run = Run(task, first, seed=SEED)
    run.advance(updates=after)
    run.switch(second)
    run.advance(updates=updates_after(task, first, second, after, 1))
    hand = written_by_hand(TASKS[name], first, second, after, 1)
    assert_same(hand.end(), End.of(run.model, losses))
    assert run.optimizer is not None
    assert_same_state(run.optimizer, hand.optimizer)


def assert_same_state(a: torch.optim.Optimizer, b: torch.optim.Optimizer) -> None:
    left, right = a.state_dict(), b.state_dict()
    assert left["param_groups"] == right["param_groups"]
    assert left["state"].keys() == right["state"].keys()
    for key, values in left["state"].items():
        assert all(same_bits(values[name], right["state"][key][name]) for name in values if values[name] is not None)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=[*PAIRS])
def test_a_switch_inside_an_update_completes_it_first(pair: tuple[Recipe, Recipe]) -> None:
    first, second = pair
    task, losses = keeping_losses(TASKS["points"])
    run = Run(task, first, seed=SEED)
    run.advance(updates=1)
    for _ in range(3):
        run.run_statement()
    assert not run.engine.at_boundary
    run.switch(second)
    assert (run.updates, run.source) == (2, second.source())
    run.advance(updates=updates_after(task, first, second, 2, 0))
    assert run.source == second.source()
    assert_same(written_by_hand(TASKS["points"], first, second, 2, 0).end(), End.of(run.model, losses))


def test_two_switches_at_one_boundary_go_on_with_the_next_batch() -> None:
    first, then, last = BASE, BASE.replace(zero_grad=False), BASE.replace(zero_grad=False, accumulate=2)
    task, losses = keeping_losses(TASKS["points"])
    run = Run(task, first, seed=SEED)
    run.advance(updates=3)
    run.switch(then)
    run.switch(last)
    run.advance(updates=updates_after(task, first, last, 3, 1))
    assert_same(written_by_hand(TASKS["points"], first, last, 3, 1).end(), End.of(run.model, losses))


def test_another_optimizer_starts_empty_and_says_so() -> None:
    run = Run(TASKS["points"], Recipe(optimizer="adam", lr=0.01))
    run.advance(updates=3)
    run.switch(Recipe(optimizer="adam", lr=0.02))
    assert run.optimizer is not None
    assert run.restarted_optimizers == []
    assert all(int(state["step"]) == 3 for state in run.optimizer.state.values())
    assert run.optimizer.param_groups[0]["lr"] == 0.02
    run.switch(Recipe(optimizer="momentum", lr=0.02))
    assert run.restarted_optimizers == ["optimizer"]
    assert not run.optimizer.state


def test_the_scaler_keeps_its_scale_over_a_switch() -> None:
    run = Run(TASKS["line"], Recipe(amp="fp16", lr=0.01))
    run.advance(updates=4)
    scale = run.loop.scale()
    assert scale is not None
    assert scale < 65536  # it overflowed, so this is not just where every scaler begins
    run.switch(Recipe(amp="fp16", lr=0.01, zero_grad=False))
    assert run.loop.scale() == scale
