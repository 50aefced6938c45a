"""The loss scale: its numbers are those of plain PyTorch, written here, and its words and pictures show them."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab import tasks
from gradlab.course import loss_scale
from gradlab.course.instruments.loss_scale import part_text, scale_text
from gradlab.course.instruments.loss_scale_numbers import (
    FIRST,
    LAST,
    SUBJECTS,
    Outcome,
    Subject,
    gradients_of,
    make_subject,
    number_line,
    outcome_of,
    run_scaler,
)
from gradlab.drawing import Drawing

TASK = tasks.digits(device="cpu")
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


@cache
def subject(name: str) -> Subject:
    return make_subject(name)


def outcome(name: str, format: str, scale: float) -> Outcome:
    exact, got = (gradients_of(subject(name), *how) for how in ((None, 1.0), (format, scale)))
    return outcome_of(exact, got, format, scale)


def panel(name: str, width: int = 460, height: int = 300, **settings: Any) -> Drawing:
    instrument = loss_scale(**settings)
    return instrument.render(instrument.values).panels[name](width, height)


def gradient(model: nn.Module, weight: float, scale: float, dtype: torch.dtype | None) -> Tensor:
    """One backward pass in plain PyTorch."""
    x, y = TASK.batches[0]
    for parameter in model.parameters():
        parameter.grad = None
    if dtype is None:
        loss = nn.functional.cross_entropy(model(x), y)
    else:
        with torch.autocast("cpu", dtype):
            loss = nn.functional.cross_entropy(model(x), y)
    (loss * weight * scale).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def tally(values: Tensor) -> dict[str, int]:
    """Count what became 0, subnormal in fp16, inf or NaN, by fp16's own limits."""
    bad = values.isnan() | values.isinf()
    zero = values == 0
    small = ~zero & (values.abs() < 2.0**-14)
    good = len(values) - int(bad.sum()) - int(zero.sum()) - int(small.sum())
    return {"zero": int(zero.sum()), "subnormal": int(small.sum()), "normal": good, "overflow": int(bad.sum())}


@pytest.mark.parametrize("name", list(SUBJECTS))
@pytest.mark.parametrize("power", [0, 16])
def test_what_gradients_become_is_what_a_plain_backward_pass_makes_of_them(name: str, power: int) -> None:
    seen = subject(name)
    scale = 2.0**power
    exact = gradient(seen.model, seen.weight, 1.0, None)
    got = gradient(seen.model, seen.weight, scale, torch.float16)
    there = exact != 0
    found = outcome(name, "fp16", scale)
    assert {kind: found.count(kind) for kind in found.counts} == tally(got[there])
    assert found.by_conversion == tally((exact[there] * scale).half().float())
    assert found.total == int(there.sum())
    off = ((got / scale)[there] - exact[there]).norm() / exact.norm()
    assert found.error == pytest.approx(float(off), rel=1e-4, nan_ok=True)


def test_the_histogram_moves_with_the_scale() -> None:
    exact = gradients_of(subject("digits"), None, 1.0)
    one, other = (sum(outcome_of(exact, exact, "fp16", 2.0**power).counts.values()) for power in (0, 3))
    assert (one[:-3] == other[3:]).all()  # type: ignore[index]
    sizes = exact.abs()
    inside = (sizes >= 2.0**-12) & (sizes < 2.0**-11)
    assert one[-12 - FIRST] == int(inside.sum())  # type: ignore[index]


@pytest.mark.parametrize("format", ["fp16", "bf16"])
def test_a_number_line_has_the_digits_that_nextafter_finds(format: str) -> None:
    line, dtype = number_line(format), TYPES[format]
    above, zero = torch.tensor(torch.inf, dtype=dtype), torch.tensor(0.0, dtype=dtype)
    for power in range(FIRST, LAST):
        start = torch.tensor(2.0**power, dtype=dtype)
        if start == 0 or start.isinf() or 2.0**power != start.item():
            assert line.digits[power - FIRST] == 0
        else:
            step = (torch.nextafter(start, above) - start).item()
            assert line.digits[power - FIRST] == 1 + round(torch.log2(start.float() / step).item())
    least = torch.nextafter(zero, above)
    # Half the least number is rounded to 0. Halving on paper: bf16's least number is a subnormal of fp32, too.
    assert line.zero_below == round(torch.log2(least.double()).item()) - 1
    assert 2.0**line.normal_from == torch.finfo(dtype).smallest_normal
    assert 2.0 ** (line.inf_from - 1) <= torch.finfo(dtype).max < 2.0**line.inf_from


@pytest.mark.parametrize(("name", "init", "interval"), [("digits", 65536.0, 5), ("weighted", 2.0**24, 2)])
def test_the_scale_is_that_of_a_scaler_run_by_hand(name: str, init: float, interval: int) -> None:
    seen = make_subject(name)
    before = [p.detach().clone() for p in seen.model.parameters()]
    ours = run_scaler(seen, "fp16", init, interval)
    gradients_of(seen, "fp16", 1.0)
    for was, parameter in zip(before, seen.model.parameters(), strict=True):  # it is left as it was
        assert torch.equal(was, parameter)
        assert parameter.grad is None
    model = TASK.build(seed=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=init, growth_interval=interval)
    scales, skipped = [init], []
    for update in range(1, 51):
        x, y = TASK.batches[(update - 1) % len(TASK.batches)]
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = nn.functional.cross_entropy(model(x), y) * seen.weight
        scaler.scale(loss).backward()
        if any(not p.grad.isfinite().all() for p in model.parameters() if p.grad is not None):
            skipped.append(update)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert skipped
    assert ours.skipped == tuple(skipped)
    assert ours.scales == tuple(scales)


@pytest.mark.parametrize("settings", [{"model": "weighted"}, {"model": "digits", "scale": 65536, "dtype": "bf16"}])
def test_the_shown_code_is_what_was_run(settings: dict[str, Any]) -> None:
    instrument = loss_scale(growth_interval=5, **settings)
    view = instrument.render(instrument.values)
    left, right = view.code.split("\n\n")
    seen = make_subject(settings["model"])
    names: dict[str, Any] = {"torch": torch, "model": seen.model, "device": "cpu", "batches": TASK.batches}
    names["loss_fn"] = nn.functional.cross_entropy
    exec(left, names)
    row = torch.cat([p.grad.flatten() for p in seen.model.parameters() if p.grad is not None])
    assert torch.equal(
        row, gradients_of(subject(settings["model"]), instrument.values["dtype"], instrument.values["scale"])
    )
    names["batches"] = [TASK.batches[i % len(TASK.batches)] for i in range(50)]
    exec(right, names)
    assert f"after update 50: loss scale {scale_text(names['scaler'].get_scale())};" in view.state


@pytest.mark.parametrize(("model", "size"), [("weighted", (300, 260)), ("sigmoids", (900, 420))])
def test_words_and_picture_show_the_same_numbers(model: str, size: tuple[int, int]) -> None:
    instrument = loss_scale(model=model)
    view = instrument.render(instrument.values)
    drawing = view.panels["gradients"](*size)
    exact = gradient(subject(model).model, subject(model).weight, 1.0, None)
    counts = tally(gradient(subject(model).model, subject(model).weight, 1.0, torch.float16)[exact != 0])
    total = sum(counts.values())
    for kind, count in counts.items():
        written = drawing.find(f"zone share {kind}").text
        assert written.endswith(part_text(count, total))
        assert f"{count:,}" in drawing.words
        if count and kind != "normal":
            assert f"{count:,} ({part_text(count, total)})" in view.state
    assert f"{total:,} gradients" in view.state


def test_the_mark_is_dragged_to_the_scale_below_the_pointer() -> None:
    instrument = loss_scale(model="digits", scale=256)
    drawing = instrument.render(instrument.values).panels["gradients"](460, 300)
    handle = drawing.find("handle")
    assert handle.drag.name == "scale"
    assert handle.drag.x.value(handle.points[0]) == pytest.approx(256)
    # The zones' edges are 2**-14 and 2**16, 30 doublings apart; the mark stands at the median gradient times 256.
    start, end = drawing.find("zone subnormal").points[2], drawing.find("zone overflow").points[0]
    per_doubling = (end - start) / 30
    sizes = gradient(subject("digits").model, 1.0, 1.0, None).abs()
    power = torch.log2(sizes[sizes > 0].median() * 256).item()
    assert handle.points[0] == pytest.approx(start + (power + 14) * per_doubling)
    three_on = handle.drag.x.value(handle.points[0] + 3 * per_doubling)
    instrument.handle({"do": "drag", "name": "scale", "x": three_on, "y": 0})
    assert instrument.values["scale"] == 2048
    instrument.handle({"do": "drag", "name": "scale", "x": handle.drag.x.value(-5000.0), "y": 0})
    assert instrument.values["scale"] == 1


def test_a_conversion_is_told_where_it_differs() -> None:
    exact = gradient(subject("weighted").model, 1e-5, 1.0, None)
    view = loss_scale(model="weighted").render(loss_scale(model="weighted").values)
    assert f"would make {int((exact[exact != 0].half() == 0).sum()):,} of them 0 and none inf" in view.state
    assert "16 bits wide" in view.note
    same = loss_scale(model="weighted", dtype="bf16")
    assert "Converting" not in same.render(same.values).state


def test_the_scaler_panel_shows_what_has_happened_by_an_update() -> None:
    instrument = loss_scale(model="digits", growth_interval=5)
    run = run_scaler(subject("digits"), "fp16", 65536.0, 5)
    for update in (0, 1, run.skipped[0] - 1, run.skipped[0], 50):
        instrument.turn("update", update)
        view = instrument.render(instrument.values)
        drawing = view.panels["scaler"](460, 300)
        past = [each for each in run.skipped if each <= update]
        crosses = [mark for mark in drawing.marks if mark.id == "skipped"]
        assert sum(len(mark.points) for mark in crosses) == 2 * len(past)
        words = f"loss scale {scale_text(run.scales[update])}; {len(past)} of {update} steps skipped"
        assert words in view.state
        assert scale_text(run.scales[update]) in drawing.find("corner").text


def test_the_pictures_name_the_subject_and_the_growth_interval() -> None:
    left, right = (panel(name, model="trained", growth_interval=2000) for name in ("gradients", "scaler"))
    assert left.find("title").text == SUBJECTS["trained"]
    assert right.find("title").text == "GradScaler, growth_interval 2,000"
    assert "growth_interval 2,000" in right.words


def test_shares_never_say_none_or_all_of_what_is_neither() -> None:
    assert [part_text(count, 10_000) for count in (0, 1, 9_999, 10_000)] == ["0%", "0.01%", "99.99%", "100%"]
    assert not {part_text(1, 13_000), part_text(12_999, 13_000)} & {"0%", "0.0%", "0.00%", "100%", "100.0%", "100.00%"}
