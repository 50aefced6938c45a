"""The loss scale: its numbers are those of plain PyTorch, written here, and its words and pictures show them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab import tasks
from gradlab.course import loss_scale
from gradlab.course.instruments.loss_scale import part_text, scale_text
from gradlab.course.instruments.loss_scale_numbers import FIRST, limits_of, measure_outcome, outcome_of, run_scaler

TASK = tasks.digits(device="cpu")
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


def gradient(scale: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
    """One backward pass in plain PyTorch."""
    x, y = TASK.batches[0]
    model = TASK.build(seed=0)
    with torch.autocast("cpu", dtype or torch.float16, enabled=dtype is not None):
        loss = nn.functional.cross_entropy(model(x), y)
    (loss * 1e-5 * scale).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def tally(values: Tensor) -> dict[str, int]:
    """Count what became 0, subnormal in fp16, inf or NaN, by fp16's own limits."""
    bad = values.isnan() | values.isinf()
    zero = values == 0
    small = ~zero & (values.abs() < 2.0**-14)
    good = len(values) - int(bad.sum()) - int(zero.sum()) - int(small.sum())
    return {"zero": int(zero.sum()), "subnormal": int(small.sum()), "normal": good, "overflow": int(bad.sum())}


@pytest.mark.parametrize("power", [0, 16, 40])
def test_gradients_become_what_a_plain_backward_pass_makes(power: int) -> None:
    scale = 2.0**power
    exact, got = gradient(), gradient(scale, torch.float16)
    there = exact != 0
    outcome = measure_outcome("fp16", scale)
    assert {kind: outcome.count(kind) for kind in outcome.counts} == tally(got[there])
    assert outcome.total == int(there.sum())
    off = ((got / scale)[there] - exact[there]).norm() / exact.norm()
    assert outcome.error == pytest.approx(float(off), rel=1e-4, nan_ok=True)


def test_the_histogram_moves_with_the_scale() -> None:
    exact = gradient()
    one, other = (sum(outcome_of(exact, exact, "fp16", 2.0**power).counts.values()) for power in (0, 3))
    assert (one[:-3] == other[3:]).all()  # type: ignore[index]
    sizes = exact.abs()
    inside = (sizes >= 2.0**-28) & (sizes < 2.0**-27)
    assert one[-28 - FIRST] == int(inside.sum())  # type: ignore[index]


@pytest.mark.parametrize("format", ["fp16", "bf16"])
def test_the_limits_of_a_type_are_those_that_nextafter_finds(format: str) -> None:
    dtype = TYPES[format]
    zero, above = (torch.tensor(number, dtype=dtype) for number in (0.0, torch.inf))
    zero_below, normal_from, inf_from = limits_of(format)
    # Half the least number is rounded to 0. Halving on paper: bf16's least number is a subnormal of fp32, too.
    assert zero_below == round(torch.log2(torch.nextafter(zero, above).double()).item()) - 1
    assert 2.0**normal_from == torch.finfo(dtype).smallest_normal
    assert 2.0 ** (inf_from - 1) <= torch.nextafter(above, zero).item() < 2.0**inf_from


@pytest.mark.parametrize(("init", "interval"), [(65536.0, 2), (2.0**36, 5)])
def test_the_scale_is_that_of_a_scaler_run_by_hand(init: float, interval: int) -> None:
    model = TASK.build(seed=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=init, growth_interval=interval)
    scales, skipped = [init], []
    for update in range(1, 51):
        x, y = TASK.batches[(update - 1) % len(TASK.batches)]
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = nn.functional.cross_entropy(model(x), y) * 1e-5
        scaler.scale(loss).backward()
        if any(not p.grad.isfinite().all() for p in model.parameters() if p.grad is not None):
            skipped.append(update)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert skipped
    assert run_scaler("fp16", interval, init) == (tuple(scales), tuple(skipped))


@pytest.mark.parametrize("settings", [{}, {"scale": 65536, "dtype": "bf16"}])
def test_the_shown_code_is_what_was_run(settings: dict[str, Any]) -> None:
    instrument = loss_scale(growth_interval=5, **settings)
    view = instrument.render(instrument.values)
    left, right = view.code.split("\n\n")
    model = TASK.build(seed=0)
    names: dict[str, Any] = {"torch": torch, "model": model, "device": "cpu", "batches": TASK.batches}
    names["loss_fn"] = nn.functional.cross_entropy
    exec(left, names)
    row = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    at = instrument.values
    assert torch.equal(row, gradient(at["scale"], TYPES[at["dtype"]]))
    names["batches"] = [TASK.batches[i % len(TASK.batches)] for i in range(50)]
    exec(right, names)
    assert f"after update 50: loss scale {scale_text(names['scaler'].get_scale())};" in view.state


@pytest.mark.parametrize(("scale", "size"), [(1, (300, 260)), (65536, (900, 420))])
def test_words_and_picture_show_the_same_numbers(scale: int, size: tuple[int, int]) -> None:
    view = loss_scale(scale=scale)._now()
    drawing = view.panels["gradients"](*size)
    counts = tally(gradient(scale, torch.float16)[gradient() != 0])
    total = sum(counts.values())
    for kind, count in counts.items():
        assert drawing.find(f"zone share {kind}").text.endswith(part_text(count, total))
        assert f"{count:,}" in drawing.words
        if count and kind != "normal":
            assert f"{count:,} ({part_text(count, total)})" in view.state
    assert f"{total:,} gradients" in view.state


def test_the_scaler_panel_shows_what_has_happened_by_an_update() -> None:
    instrument = loss_scale(growth_interval=2)
    scales, skipped = run_scaler("fp16", 2)
    for update in (0, 1, skipped[0] - 1, skipped[0], 50):
        instrument.turn("update", update)
        drawing = instrument.drawings()[1]
        past = [each for each in skipped if each <= update]
        crosses = [mark for mark in drawing.marks if mark.id == "skipped"]
        assert sum(len(mark.points) for mark in crosses) == 2 * len(past)
        assert f"loss scale {scale_text(scales[update])}; {len(past)} of {update} steps skipped" in instrument.text
        assert scale_text(scales[update]) in drawing.find("corner").text


def test_shares_never_say_none_or_all_of_what_is_neither() -> None:
    assert [part_text(count, 10_000) for count in (0, 1, 9_999, 10_000)] == ["0%", "0.01%", "99.99%", "100%"]
    assert not {part_text(1, 13_000), part_text(12_999, 13_000)} & {"0%", "0.0%", "0.00%", "100%", "100.0%", "100.00%"}
