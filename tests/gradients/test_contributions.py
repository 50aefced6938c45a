"""Contributions to ``.grad`` against an independent account: one backward a batch on a copy of the model."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from covering import covering
from points import points
from torch import Tensor, nn

from gradlab import Recipe, Run, tasks
from gradlab.gradients import Contributions, Provenance
from gradlab.gradients.contributions import MOST_KEPT, number_to_keep

TASKS = {task.name: task for task in (tasks.line(), points(), tasks.digits(), tasks.text(batch=1))}
CASES = covering(
    {
        "zero_grad": (True, False),
        "set_to_none": (True, False),
        "accumulate": (1, 2, 5),
        "divide_loss": (True, False),
        "amp": ("off", "bf16", "fp16"),
        "clip": (None, 0.1),
        "optimizer": ("sgd", "momentum", "adam", "adamw"),
        "task": tuple(TASKS),
    },
    threes=("zero_grad", "accumulate", "amp", "clip"),
)


class Account:
    """The contribution of each batch to ``.grad``, computed beside a run that goes statement by statement."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.number = 0
        self.inside: dict[int, Tensor] = {}

    def follow(self, updates: int) -> None:
        """Run some updates and keep the account."""
        run = self.run
        while run.updates < updates:
            scale = run.loop.scale()
            run.run_statement()
            label = run.statement.label
            if label == "zero_grad":
                self.inside.clear()
            elif label == "backward":
                self.number += 1
                self.inside[self.number] = self.gradient() * (1.0 if scale is None else scale)
            elif scale is not None and (label == "unscale_" or (label == "step" and run.recipe.clip is None)):
                self.multiply(1.0 / scale)  # step() unscales where nothing has
            elif label == "clip_grad_norm_":
                norm = sum(self.inside.values()).norm()
                self.multiply(min(1.0, run.recipe.clip / (float(norm) + 1e-6)))

    def multiply(self, factor: float) -> None:
        self.inside = {number: vector * factor for number, vector in self.inside.items()}

    def gradient(self) -> Tensor:
        """Return the gradient of the newest batch by itself, from a copy of the model."""
        run, recipe, names = self.run, self.run.recipe, self.run.loop.namespace
        model = copy.deepcopy(run.model)
        for param in model.parameters():
            param.grad = None
        types = {"bf16": torch.bfloat16, "fp16": torch.float16}
        with nullcontext() if recipe.amp == "off" else torch.autocast("cpu", dtype=types[recipe.amp]):
            loss = run.task.loss_fn(model(names["x"]), names["y"])
        if recipe.accumulate > 1 and recipe.divide_loss:
            loss = loss / len(names["window"])
        # The scale of the loss does not commute with fp16, so it is there in the backward, and taken out again.
        scale = run.loop.scale() or 1.0
        (loss * scale).backward()
        return torch.cat([p.grad.double().flatten() for p in model.parameters()]) / scale

    def check(self) -> None:
        measured = self.run.provenance.contributions()
        assert measured is not None
        whole = sum(self.inside.values())
        if not torch.isfinite(torch.as_tensor(whole)).all():
            assert not math.isfinite(measured.norm)
            return
        assert measured.norm == pytest.approx(float(torch.as_tensor(whole).norm()), rel=1e-3, abs=1e-12)
        if not measured.norm:
            return
        lengths = sum(float(vector.norm()) for vector in self.inside.values())
        tolerance = 1e-3 * lengths / measured.norm  # rounding of the parts, seen from the sum
        expected = {number: float(vector @ whole / (whole @ whole)) for number, vector in self.inside.items()}
        parts = {part.batches: part for part in measured.parts}
        older = expected.keys() - {first for first, last in filter(None, parts) if first == last}
        for span, part in parts.items():
            assert span is not None, "something that came from no backward"
            numbers = [span[0]] if span[0] == span[1] else older
            vector = sum(self.inside[number] for number in numbers)
            assert part.share == pytest.approx(sum(expected[number] for number in numbers), abs=tolerance)
            assert part.length == pytest.approx(float(vector.norm()), abs=tolerance * measured.norm)
        assert sum(part.share for part in measured.parts) == pytest.approx(1.0, abs=tolerance)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_shares_are_those_of_an_independent_sum(case: dict[str, Any]) -> None:
    switches = {name: value for name, value in case.items() if name != "task"}
    run = Run(TASKS[case["task"]], Recipe(**switches, lr=0.01))
    run.watch_gradients = True
    account = Account(run)
    for updates in (1, 3):
        account.follow(updates)
        account.check()


def test_with_a_scaler_and_no_zero_grad_nearly_all_is_fresh() -> None:
    run = Run(tasks.digits(), Recipe(lr=0.05, amp="fp16", zero_grad=False))
    run.watch_gradients = True
    run.advance(updates=60)
    measured = run.provenance.contributions(run.loop.scale_in_grad())
    assert measured is not None
    assert sum(part.share for part in measured.parts if part.applied[0] < 2) > 0.95
    assert len(measured.parts) == MOST_KEPT  # older ones are next to nothing by now


def measured(book: Provenance) -> Contributions:
    contributions = book.contributions()
    assert contributions is not None
    return contributions


@pytest.fixture
def model() -> nn.Linear:
    return nn.Linear(2, 1, bias=False)


def add(model: nn.Module, *numbers: float) -> None:
    """One backward whose gradient is exactly (a, b)."""
    model(torch.tensor([numbers], dtype=torch.float32)).sum().backward()


@pytest.fixture
def book(model: nn.Linear) -> Iterator[Provenance]:
    book = Provenance(model.named_parameters())
    book.keeps_contributions = True
    yield book
    book.close()


def spans_and_vectors(book: Provenance) -> list[Any]:
    contributions = measured(book)
    assert contributions.vectors is not None
    return list(zip((part.batches for part in contributions.parts), contributions.vectors.tolist(), strict=True))


def test_a_part_that_points_backwards_has_a_negative_share(model: nn.Linear, book: Provenance) -> None:
    add(model, 3, 0)
    add(model, -1, 2)
    parts = measured(book).parts
    assert measured(book).norm == pytest.approx(math.sqrt(8))
    assert [part.share for part in parts] == pytest.approx([6 / 8, 2 / 8])
    add(model, -4, -1)  # the sum is (-2, 1)
    assert [part.share for part in measured(book).parts] == pytest.approx([-6 / 5, 4 / 5, 7 / 5])
    assert [part.length for part in measured(book).parts] == pytest.approx([3, math.sqrt(5), math.sqrt(17)])


def test_a_single_batch_is_the_whole_sum_and_nothing_no_part(model: nn.Linear, book: Provenance) -> None:
    assert measured(book) == Contributions((), 0.0)
    add(model, 3, 4)
    (part,) = measured(book).parts
    assert (part.batches, part.applied, part.share, part.along, part.length) == ((1, 1), (0, 0), 1.0, 5.0, 5.0)
    model.zero_grad(set_to_none=False)
    assert measured(book) == Contributions((), 0.0)


def test_what_is_clipped_is_scaled_with_all_before_it(model: nn.Linear, book: Provenance) -> None:
    add(model, 6, 8)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    add(model, 1, 0)
    assert spans_and_vectors(book) == [((1, 1), pytest.approx([0.6, 0.8], rel=1e-4)), ((2, 2), [1.0, 0.0])]
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    assert sum(row[0] for _, row in spans_and_vectors(book)) == pytest.approx(float(model.weight.grad[0, 0]), rel=1e-5)


def test_what_somebody_writes_into_grad_is_told_apart(model: nn.Linear, book: Provenance) -> None:
    add(model, 1, 0)
    model.weight.grad += torch.tensor([[0.0, 1.0]])
    assert spans_and_vectors(book) == [(None, [0.0, 1.0]), ((1, 1), [1.0, 0.0])]
    add(model, 3, -4)
    assert spans_and_vectors(book) == [(None, [0.0, 1.0]), ((1, 1), [1.0, 0.0]), ((2, 2), [3.0, -4.0])]


def test_what_is_older_than_the_kept_ones_is_one_part(model: nn.Linear, book: Provenance) -> None:
    for number in range(1, 101):
        add(model, number, 2 * number)
    parts = spans_and_vectors(book)
    oldest = 100 - MOST_KEPT
    assert parts[0][0] == (1, oldest)
    assert parts[0][1] == pytest.approx([sum(range(1, oldest + 1)), 2 * sum(range(1, oldest + 1))])
    assert [span for span, _ in parts[1:]] == [(n, n) for n in range(oldest + 1, 101)]
    assert all(row == [span[0], 2 * span[0]] for span, row in parts[1:])


def test_keeping_may_begin_late(model: nn.Linear) -> None:
    book = Provenance(model.named_parameters())
    add(model, 1, 0)
    add(model, 2, 0)
    book.keeps_contributions = True
    add(model, 0, 1)
    assert spans_and_vectors(book) == [((1, 2), [3.0, 0.0]), ((3, 3), [0.0, 1.0])]


def test_a_pass_that_misses_a_parameter_leaves_nothing_there() -> None:
    model = nn.Linear(1, 1)
    book = Provenance(model.named_parameters())
    book.keeps_contributions = True
    x = torch.ones(1, 1)
    model(x).sum().backward()
    torch.autograd.grad(10 * model(x).sum(), model.parameters())
    (model.weight * x).sum().backward()
    model(x).sum().backward()  # .grad is (3, 2)
    for param in model.parameters():
        param.grad *= 0.5
    assert spans_and_vectors(book) == [((1, 1), [0.5, 0.5]), ((2, 2), [0.5, 0.0]), ((3, 3), [0.5, 0.5])]


def test_a_large_model_is_told_in_two_parts(model: nn.Linear, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradlab.gradients.provenance.number_to_keep", lambda elements, element_size: 0)
    book = Provenance(model.named_parameters())
    book.keeps_contributions = book.measure = True
    add(model, 3, 0)
    assert measured(book).vectors is None
    assert [part.share for part in measured(book).parts] == [1.0]
    add(model, 1, 0)
    add(model, -1, 2)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    older, newest = measured(book).parts
    assert (older.batches, newest.batches) == ((1, 2), (3, 3))
    assert (older.share, newest.share) == pytest.approx((12 / 13, 1 / 13))
    assert measured(book).norm == pytest.approx(1.0, rel=1e-4)
    assert (older.along, newest.along) == pytest.approx((12 / 13, 1 / 13), rel=1e-4)
    assert (older.length, newest.length) == pytest.approx((4 / math.sqrt(13), math.sqrt(5 / 13)), rel=1e-4)
    book.measure = False
    add(model, 1, 1)
    assert book.contributions() is None


def test_in_two_parts_a_pass_counts_only_where_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradlab.gradients.provenance.number_to_keep", lambda elements, element_size: 0)
    first, second = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    book = Provenance([("first", first), ("second", second)])
    book.keeps_contributions = book.measure = True
    (2 * first + second).backward()
    second.backward()
    (first + second).backward()  # the sum is (3, 3), and pass 2 missed the first
    assert [part.share for part in measured(book).parts] == pytest.approx([12 / 18, 6 / 18])
    (3 * second).backward()  # the sum is (3, 6), and the newest pass missed the first
    older, newest = measured(book).parts
    assert (older.batches, newest.batches) == ((1, 3), (4, 4))
    assert (older.share, newest.share) == pytest.approx((27 / 45, 18 / 45))


@pytest.mark.parametrize(("elements", "expected"), [(2, 32), (65_536, 32), (500_000, 8), (600_000, 0), (10**9, 0)])
def test_how_many_are_kept_is_bounded_in_bytes(elements: int, expected: int) -> None:
    assert number_to_keep(elements) == expected


def test_reset_keeps_on_watching() -> None:
    run = Run(tasks.digits(), Recipe(lr=0.02, accumulate=3))
    run.watch_gradients = True
    run.reset()
    run.advance(updates=2)
    assert len(measured(run.provenance).parts) == 3
    run.watch_gradients = False
    assert run.provenance.contributions() is None  # of the newest contribution nothing else was taken as it came
    run.advance(updates=1)
    assert measured(run.provenance).vectors is None
    assert len(measured(run.provenance).parts) == 2


@pytest.mark.parametrize("more", [3, 100])
def test_what_is_put_back_is_told_as_before(model: nn.Linear, book: Provenance, more: int) -> None:
    for number in range(20):
        add(model, number, 1)
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    assert model.weight.grad is not None
    before, histories, grad = spans_and_vectors(book), book.copy_histories(), model.weight.grad.clone()
    for number in range(more):
        model.weight.grad = None if number % 7 == 0 else model.weight.grad
        add(model, 1, number)
    model.weight.grad = grad
    book.restore_histories(histories)
    assert [batches for batches, _ in spans_and_vectors(book)] == [batches for batches, _ in before]
    for (_, now), (_, then) in zip(spans_and_vectors(book), before, strict=True):
        assert now == pytest.approx(then)
    add(model, 7, 7)
    assert spans_and_vectors(book)[-1] == ((21, 21), [7.0, 7.0])
    assert len(spans_and_vectors(book)) == 21


class Phases(nn.Module):
    """A model of complex weights, and a real one."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weights = nn.Parameter(torch.randn(3, dtype=torch.complex64, generator=generator))
        self.shift = nn.Parameter(torch.randn(1, generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        """Return the size of a complex sum."""
        return (x * self.weights).sum(1, keepdim=True).abs() + self.shift


@pytest.mark.parametrize("keeps", [True, False])
def test_complex_gradients_are_measured_by_both_their_parts(keeps: bool) -> None:
    model, x = Phases(), torch.randn(3, 4, 3, generator=torch.Generator().manual_seed(1))
    expected = []
    for batch in x:
        gradients = torch.autograd.grad(model(batch).square().mean(), list(model.parameters()))
        expected.append(
            [number for g in gradients for n in g.tolist() for number in (complex(n).real, complex(n).imag)]
        )
    parts = torch.tensor(expected, dtype=torch.float64)
    book = Provenance(model.named_parameters())
    book.measure, book.keeps_contributions = True, keeps
    for batch in x:
        model(batch).square().mean().backward()
    total = parts.sum(0)
    shares = (parts @ total / total.square().sum()).tolist()
    result = measured(book)
    assert [part.share for part in result.parts] == pytest.approx(shares if keeps else [sum(shares[:2]), shares[2]])
    assert [result.norm, book.contents().norm] == pytest.approx([float(total.norm())] * 2)
    book.close()


def test_a_model_of_one_or_two_complex_weights_has_no_contours() -> None:
    for count in (1, 2):
        task = tasks.Task(
            "complex",
            lambda seed, count=count: nn.Linear(count, 1, bias=False, dtype=torch.complex64),
            [(torch.ones(1, count, dtype=torch.complex64), torch.zeros(1, 1))],
            lambda output, y: (output.abs() - y).square().mean(),
        )
        run = Run(task)
        run.advance(updates=2)
        assert not run.record.is_two_weights
        assert run.record.norm > 0
        run.close()
