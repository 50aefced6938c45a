"""No category is ever negative, at any moment that a Ledger keeps, whatever is learnt late about a storage."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch
from ledger_invariant import look_at_every_change
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from gradlab import Ledger
from gradlab.memory.storages import StorageRecord
from gradlab.memory.timeline import ACTIVATIONS, GRADIENTS, INPUTS, OTHER, WEIGHTS, CategoryTotals

STORIES: dict[str, Callable[[], None]] = {}


def story(tell: Callable[[], None]) -> Callable[[], None]:
    STORIES[tell.__name__] = tell
    return tell


def parts() -> tuple[nn.Sequential, Tensor, Tensor]:
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 10))
    return model, torch.randn(64, 8), torch.randint(0, 10, (64,))


@story
def a_batch_known_after_something_large_has_gone() -> None:
    model, x, y = parts()
    big = torch.zeros(10**5)
    with Ledger():
        del big
        loss = cross_entropy(model(x), y)
        loss.backward()


@story
def ledgers_within_ledgers() -> None:
    model, x, y = parts()
    with Ledger() as outer, Ledger(model) as inner:
        loss = cross_entropy(model(x), y)
        with Ledger(), outer:
            loss.backward()
        with inner, Ledger(model, (), x):
            cross_entropy(model(x), y).backward()


@story
def gradients_accumulated_and_taken_over_by_the_optimizer() -> None:
    model, x, y = parts()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    with Ledger():
        for part in x.split(16), y.split(16):
            del part
        for rows, targets in zip(x.split(16), y.split(16), strict=True):
            (cross_entropy(model(rows), targets) / 4).backward()
        grads = [p.grad for p in model.parameters()]
        optimizer.step(lambda: cross_entropy(model(x), y))
        optimizer.zero_grad()
        model.register_buffer("mean", grads[0])  # a weight from now on, and all along
        optimizer.zero_grad(set_to_none=False)


@pytest.mark.parametrize("tell", STORIES.values(), ids=[*STORIES])
def test_no_category_is_negative_at_any_moment(tell: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    looks = look_at_every_change(monkeypatch)
    tell()
    gc.collect()
    assert len(looks) > 50


def test_the_peak_before_a_batch_is_known_tells_it_as_a_batch() -> None:
    model, x, y = parts()
    big = torch.zeros(10**6)
    with Ledger(model) as ledger:
        big.add_(1)
        y.clone()
        ledger.mark("sum")
        del big
        cross_entropy(model(x), y)
    assert ledger.at_peak["activations"] == 0
    assert ledger.at_peak["inputs"] == y.nbytes
    assert ledger.at_peak == ledger.peak_at.high
    assert ledger.at_peak["other"] == ledger.peak - y.nbytes - sum(p.nbytes for p in model.parameters())


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_what_a_generator_makes_is_an_activation_while_saved(named: bool, cut: bool) -> None:
    generator, discriminator = nn.Linear(16, 1024), nn.Linear(1024, 1)
    z = torch.randn(64, 16)
    with Ledger(*([nn.ModuleList([generator, discriminator]), (), z] if named else [])) as ledger:
        before = ledger.by_category["inputs"]
        fake = generator(z)
        score = discriminator(fake.detach() if cut else fake).mean()  # saves what it is given
        now = ledger.by_category
        assert now["activations"] == fake.nbytes
        assert now["inputs"] == before + (0 if named else z.nbytes)
        score.backward()
        now = ledger.by_category
        assert now["activations"] == 0
        assert now["other"] >= fake.nbytes


def test_a_past_moment_has_what_a_storage_was_then() -> None:
    totals = CategoryTotals()
    record = StorageRecord(totals, 100, OTHER)
    totals.begin_interval(("second", "", 2))
    record.set_category(ACTIVATIONS)
    StorageRecord(totals, 1, OTHER)  # a new highest moment: 100 saved
    totals.begin_interval(("third", "", 3))
    record.resize(40)
    record.set_category(GRADIENTS)
    totals.begin_interval(("fourth", "", 4))
    points = totals.points()
    assert [point.high["activations"] for point in points] == [0, 100, 100, 0]
    assert [point.high["other"] for point in points] == [100, 1, 1, 1]
    assert [point.bytes["gradients"] for point in points] == [0, 0, 40, 40]
    record.set_category(INPUTS, retroactive=True)
    points = totals.points()
    assert [point.high["inputs"] for point in points] == [100, 100, 100, 40]
    assert [point.bytes["inputs"] for point in points] == [100, 100, 40, 40]
    assert [point.high["other"] for point in points] == [0, 1, 1, 1]
    assert {point.high[name] for point in points for name in ("activations", "gradients")} == {0}
    record.set_category(WEIGHTS, retroactive=True)
    assert totals.peak_at.high["weights"] == 100


def test_a_storage_that_changes_all_the_time_has_a_short_history() -> None:
    totals = CategoryTotals()
    record = StorageRecord(totals, 8, OTHER)
    for i in range(1000):
        record.set_category((OTHER, ACTIVATIONS)[i % 2])
        totals.begin_interval(("", "", i))
    assert len(record._history) <= 32
    record.set_category(INPUTS, retroactive=True)
    points = totals.points()
    assert [point.bytes["inputs"] for point in points[-10:]] == [8] * 10
    assert points[5].bytes["inputs"] == 0  # left as it was
    assert all(min(point.bytes.values()) >= 0 and point.total == 8 for point in points)
