"""The record of a run: of bounded size, and true to every update that it summarises."""

from __future__ import annotations

import gc
import math
import random
import sys
from types import FunctionType, ModuleType
from typing import Any

import pytest
from points import points

from gradlab import Recipe, Run, tasks
from gradlab.loop.history import MOST_ROWS, History


def written(losses: list[float], norms: list[float] | None = None) -> History:
    """A record of updates with these losses, each with a scale of 100 + its number, every third one skipped."""
    record = History()
    for i, loss in enumerate(losses, start=1):
        record.updates += 1
        norm = norms[i - 1] if norms else 2 * loss
        record.write(i, loss, norm, 100.0 + i, 0.25 if i % 2 else 0.75, skipped=i % 3 == 0)
    return record


def stride_for(count: int) -> int:
    """The smallest power of two that leaves fewer than MOST_ROWS rows, worked out without the code."""
    stride = 1
    while count // stride >= MOST_ROWS:
        stride *= 2
    return stride


COUNTS = [0, 1, 1023, 1024, 1025, 2049, 10_241]


@pytest.mark.parametrize("count", COUNTS)
def test_each_row_tells_of_its_updates_and_no_others(count: int) -> None:
    numbers = random.Random(count)
    losses = [numbers.choice((1, 1, 1, 1e-9, 1e9)) * numbers.uniform(-1, 1) for _ in range(count)]
    rows = written(losses).rows
    stride = stride_for(count)
    assert rows.stride == stride
    assert len(rows) == count // stride < MOST_ROWS
    for i in range(len(rows)):
        bucket = losses[i * stride : (i + 1) * stride]
        updates = range(i * stride + 1, (i + 1) * stride + 1)
        assert rows["update"][i] == updates[0]
        assert rows["low"][i] == min(bucket)
        assert rows["high"][i] == max(bucket)
        assert rows["loss"][i] == pytest.approx(math.fsum(bucket) / stride, rel=1e-9, abs=1e-9 * max(map(abs, bucket)))
        assert rows["scale"][i] == 100 + updates[-1]
        assert rows["skipped"][i] == sum(u % 3 == 0 for u in updates)
        assert rows["underflow"][i] == pytest.approx(sum(0.25 if u % 2 else 0.75 for u in updates) / stride)


@pytest.mark.parametrize("count", [900, 5000])
def test_nan_and_infinity_are_left_out_but_not_forgotten(count: int) -> None:
    numbers = random.Random(7)
    losses = [numbers.choice((1.0, 2.0, math.nan, math.inf, -math.inf)) for _ in range(count)]
    losses[:40] = [1.0] * 9 + [math.nan] * 31
    record = written(losses)
    assert record.broken == 10
    stride = record.rows.stride
    for i in range(len(record.rows)):
        bucket = losses[i * stride : (i + 1) * stride]
        good = [v for v in bucket if math.isfinite(v)]
        low, mean, high = (record.rows[name][i] for name in ("low", "loss", "high"))
        if stride == 1:
            assert [low, mean, high] == pytest.approx([bucket[0]] * 3, nan_ok=True)
        elif not good:
            assert all(map(math.isnan, (low, mean, high)))
        else:  # the mean is a mean of means, so that gaps in it may weigh more: it stays inside the envelope
            assert (low, high) == (min(good), max(good))
            assert low - 1e-12 <= mean <= high + 1e-12


def size_of(record: History) -> int:
    """Bytes of a record and of all that it refers to, without code."""
    visited: dict[int, Any] = {}
    waiting: list[Any] = [record]
    while waiting:
        thing = waiting.pop()
        if id(thing) not in visited and not isinstance(thing, type | ModuleType | FunctionType):
            visited[id(thing)] = thing
            waiting += gc.get_referents(thing)
    return sum(map(sys.getsizeof, visited.values()))


def test_many_updates_take_bounded_memory() -> None:
    record, sizes = History(), []
    for i in range(1, 200_001):
        record.updates = i
        record.write(i, i % 100, 1.0, math.nan, math.nan, skipped=i % 10 == 0)
        if i % 997 == 0:
            record.mark_switch(f"lr {i}")
        if i % 20_000 == 0:
            sizes.append(size_of(record))
    assert max(sizes) < 500_000
    assert len(record.skipped) <= 65
    assert len(record.switches) <= 65
    assert record.skipped[-1] == 200_000
    assert record.switches[-1] == (997 * 200, f"lr {997 * 200}")
    rows = record.rows
    assert len(rows) <= MOST_ROWS
    assert rows.stride == 256
    for first, low, high in zip(rows["update"], rows["low"], rows["high"], strict=True):
        assert (low, high) == (0, 99)  # 256 updates see all of 0 to 99
        assert first % 256 == 1


# Of a real run


def test_the_norm_is_what_the_step_used() -> None:
    task = points()
    run = Run(task, Recipe(amp="fp16", clip=0.01, accumulate=2))
    for _ in range(5):
        run.advance(updates=1)
    assert list(run.record.rows["norm"]) == pytest.approx([0.01] * 5, rel=1e-3)
    free = Run(task, Recipe(accumulate=2))
    for norm in range(5):
        free.advance(updates=1)
        grads = [p.grad for p in free.model.parameters() if p.grad is not None]
        now = math.sqrt(sum(float((g.double() ** 2).sum()) for g in grads))
        assert free.record.rows["norm"][norm] == pytest.approx(now, rel=1e-5)


def test_underflow_is_the_share_that_fp16_would_lose() -> None:
    """Elements that are zero anyway, as behind a ReLU that is off, do not count."""
    run = Run(tasks.digits(), Recipe(amp="fp16"))
    run.advance(updates=1)
    grads = [p.grad for p in run.model.parameters() if p.grad is not None]
    lost = sum(int(((g != 0) & (g.half() == 0)).sum()) for g in grads)
    assert any((g == 0).any() for g in grads)
    assert run.record.rows["underflow"][0] == pytest.approx(lost / sum(int((g != 0).sum()) for g in grads))
    assert math.isnan(next(iter(advanced(Recipe()).record.rows["underflow"])))


def advanced(recipe: Recipe) -> Run:
    run = Run(tasks.line(device="cpu"), recipe)
    run.advance(updates=3)
    return run


def test_the_path_of_two_weights_begins_where_they_begin() -> None:
    run = Run(tasks.bowl(device="cpu"))
    for _ in range(3):
        run.advance(updates=1)
        x, y = (v for p in run.model.parameters() for v in p.flatten().tolist())
        assert (run.record.path["x"][-1], run.record.path["y"][-1]) == (x, y)
    assert (run.record.path["x"][0], run.record.path["y"][0]) == pytest.approx((-1.6, 1.3))
    assert len(run.record.path) == 4
