"""The loss scale: its numbers are those of plain PyTorch, written here, and its words and pictures show them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gradlab import tasks
from gradlab.course import loss_scale
from gradlab.course.instruments.loss_scale import (
    ZONES,
    limits_of,
    measure_outcome,
    part_text,
    run_scaler,
    scale_text,
)
from gradlab.drawing import Band, Dots

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


@pytest.mark.parametrize("power", [0, 16, 40])
def test_each_step_of_the_histogram_counts_gradients(power: int) -> None:
    """The kinds of the gradients between two powers of two, counted from plain PyTorch."""
    drawing = loss_scale(scale=2**power).drawings()[0]
    exact, got = gradient(), gradient(2.0**power, torch.float16)
    exact, got = exact[exact != 0].double().abs() * 2.0**power, got[exact != 0]
    bottom, total = dict.fromkeys(range(-46, 22), 0), len(exact)
    for kind in ("zero", "subnormal", "normal", "overflow"):
        if not tally(got)[kind]:
            continue
        corners = np.reshape(drawing.find(f"gradients {kind}").points, (-1, 3))
        steps = dict(zip(corners[::2, 0].astype(int), corners[::2, 1:] * total / 100, strict=True))
        for size in range(-45, 21):  # what is smaller or larger is counted at the ends
            there = got[(exact >= 2.0**size) & (exact < 2.0 ** (size + 1))]
            count = tally(there)[kind]
            assert steps.get(size, [bottom[size]] * 2) == pytest.approx([bottom[size], bottom[size] + count]), size
            bottom[size] += count
    if power >= 10:
        outline = np.reshape(drawing.find("unscaled").points, (-1, 2))
        sizes = gradient().abs()
        peak = outline[outline[:, 1].argmax()]
        inside = (sizes >= 2.0 ** peak[0]) & (sizes < 2.0 ** (peak[0] + 1))
        assert peak[1] * total / 100 == pytest.approx(int(inside.sum()))


@pytest.mark.parametrize("format", ["fp16", "bf16"])
def test_the_limits_of_a_type_are_those_that_nextafter_finds(format: str) -> None:
    dtype = TYPES[format]
    zero, above = (torch.tensor(number, dtype=dtype) for number in (0.0, torch.inf))
    zero_below, normal_from, inf_from = limits_of(format)
    # Half the least number is rounded to 0. Halving on paper: bf16's least number is a subnormal of fp32, too.
    assert zero_below == round(torch.log2(torch.nextafter(zero, above).double()).item()) - 1
    assert 2.0**normal_from == torch.finfo(dtype).smallest_normal
    assert 2.0 ** (inf_from - 1) <= torch.nextafter(above, zero).item() < 2.0**inf_from
    drawing = loss_scale(dtype=format).drawings()[0]
    zones = {
        mark.id: tuple(mark.points[::3])
        for mark in drawing.marks
        if isinstance(mark, Band) and mark.id.removeprefix("zone ") in ZONES
    }
    shaded = {
        "zone zero": (-46, zero_below),
        "zone subnormal": (zero_below, normal_from),
        "zone overflow": (inf_from, 22),
    }
    assert zones == (shaded if format == "fp16" else {})  # the axis ends before those of bf16


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
    values = instrument.values
    assert torch.equal(row, gradient(values["scale"], TYPES[values["dtype"]]))
    names["batches"] = [TASK.batches[i % len(TASK.batches)] for i in range(50)]
    exec(right, names)
    assert f"after update 50: loss scale {scale_text(names['scaler'].get_scale())};" in view.state


@pytest.mark.parametrize("scale", [1, 65536])
def test_words_and_picture_show_the_same_numbers(scale: int) -> None:
    instrument = loss_scale(scale=scale)
    drawing = instrument.drawings()[0]
    counts = tally(gradient(scale, torch.float16)[gradient() != 0])
    total = sum(counts.values())
    for kind, count in counts.items():
        assert drawing.find(f"zone share {kind}").texts == (part_text(count, total),)
        assert f"{count:,}" in drawing.words
        if count and kind != "normal":
            assert f"{count:,} ({part_text(count, total)})" in instrument.text
    assert f"{total:,} gradients" in instrument.text


def test_the_scaler_panel_shows_what_has_happened_by_an_update() -> None:
    instrument = loss_scale(growth_interval=2)
    scales, skipped = run_scaler("fp16", 2)
    for update in (0, 1, skipped[0] - 1, skipped[0], 50):
        instrument.turn("update", update)
        drawing = instrument.drawings()[1]
        past = [each for each in skipped if each <= update]
        crosses = [mark.points for mark in drawing.marks if isinstance(mark, Dots) and mark.id == "skipped"]
        assert np.ravel(crosses).tolist() == [n for each in past for n in (each, np.log2(scales[each - 1]))]
        assert tuple(drawing.find("now").points) == (update, np.log2(scales[update]))
        x, power = np.reshape(drawing.find("scale").points, (-1, 2)).T
        between = np.arange(update) + 0.5  # the scale of each update
        assert np.interp(between, x, power).tolist() == np.log2(scales[:update]).tolist()
        assert f"loss scale {scale_text(scales[update])}; {len(past)} of {update} steps skipped" in instrument.text
        assert scale_text(scales[update]) in drawing.corner[0]


def test_shares_never_say_none_or_all_of_what_is_neither() -> None:
    assert [part_text(count, 10_000) for count in (0, 1, 9_999, 10_000)] == ["0%", "0.01%", "99.99%", "100%"]
    assert not {part_text(1, 13_000), part_text(12_999, 13_000)} & {"0%", "0.0%", "0.00%", "100%", "100.0%", "100.00%"}
