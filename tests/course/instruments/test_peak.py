"""The peak against a loop written here and the allocator's own events; pictures and words show the same numbers."""

from __future__ import annotations

import gc
import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.checkpoint import checkpoint_sequential

from gradlab.course import peak
from gradlab.course.instruments.peak_numbers import PeakSettings, effects, measure_peak, peak_source
from gradlab.drawing import Text
from gradlab.formatting import bytes_text
from gradlab.memory import CATEGORIES

DTYPES = {"off": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
SLACK = 64
"""Bytes: numbers that a loop keeps for itself, as the loss before and the scale, which are nobody's category."""
CASES = [  # each value of each switch at least once, and what depends on two of them
    {},
    {"optimizer": "momentum", "batch": 1},
    {"width": 128, "depth": 2, "batch": 256},
    {"place": "before backward", "set_to_none": False},
    {"place": "after step", "set_to_none": False, "optimizer": "sgd"},
    {"accumulate": 2, "place": "before backward", "amp": "bf16"},
    {"amp": "fp16", "batch": 8, "accumulate": 4},
    {"checkpoint": True, "depth": 8, "batch": 256, "optimizer": "sgd"},
]


def plain_peak(at: PeakSettings) -> int:
    """The most bytes that the allocator gave out during the second update of a loop written by hand."""
    gc.collect()
    with (
        torch.backends.mkldnn.flags(enabled=False),
        profile(activities=[ProfilerActivity.CPU], profile_memory=True) as told,
    ):
        torch.manual_seed(1)
        modules: list[nn.Module] = []
        for _ in range(at.depth):
            modules += [nn.Linear(at.width, at.width), nn.ReLU()]
        model = nn.Sequential(*modules, nn.Linear(at.width, 10))
        optimizers: dict[str, Any] = {
            "sgd": lambda: torch.optim.SGD(model.parameters(), lr=0.1),
            "momentum": lambda: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
            "adam": lambda: torch.optim.Adam(model.parameters()),
        }
        optimizer = optimizers[at.optimizer]()
        scaler = torch.amp.GradScaler("cpu", init_scale=256.0, enabled=at.amp == "fp16")
        window = [(torch.randn(at.batch, at.width), torch.randint(10, (at.batch,))) for _ in range(at.accumulate)]
        for update in (1, 2):
            with record_function(f"update {update}"):
                pass
            if at.place == "before forward":
                optimizer.zero_grad(at.set_to_none)
            for micro, (x, y) in enumerate(window):
                with torch.autocast("cpu", dtype=DTYPES[at.amp], enabled=at.amp != "off"):
                    if at.checkpoint:
                        cut = round((2 * at.depth + 1) ** 0.5)
                        kept = {"use_reentrant": False, "preserve_rng_state": False}
                        loss = cross_entropy(checkpoint_sequential(model, cut, x, **kept), y)
                    else:
                        loss = cross_entropy(model(x), y)
                if at.place == "before backward" and micro == 0:
                    optimizer.zero_grad(at.set_to_none)
                scaler.scale(loss / at.accumulate if at.accumulate > 1 else loss).backward()
            scaler.step(optimizer)
            scaler.update()
            if at.place == "after step":
                optimizer.zero_grad(at.set_to_none)
    now = highest = 0
    for event in sorted(told.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            now += event.nbytes()
            highest = max(highest, now)
        elif event.name() == "update 2":
            highest = now
    return highest


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_peak_is_that_of_a_plain_loop(case: dict[str, Any]) -> None:
    at = PeakSettings(**case)
    assert abs(measure_peak(at).peak - plain_peak(at)) <= SLACK


@pytest.mark.parametrize(("optimizer", "kept"), [("sgd", 0), ("adam", 2)])
def test_gradients_and_optimizer_state_are_counted_to_the_byte(optimizer: str, kept: int) -> None:
    at = PeakSettings(optimizer=optimizer, width=32, depth=4, batch=16)
    weights = 4 * (4 * (32 * 32 + 32) + 32 * 10 + 10)
    last = measure_peak(at).phases[-1].moments[-1]
    assert last["weights"] == last["gradients"] == weights
    counters = 4 * 10 if optimizer == "adam" else 0  # a step for each of the ten tensors
    assert last["optimizer"] == kept * weights + counters
    assert last["inputs"] == 16 * 32 * 4 + 16 * 8


def test_the_parts_of_the_peak_add_up_and_its_place_is_a_line_of_the_text() -> None:
    for case in CASES:
        at = PeakSettings(**case)
        now = measure_peak(at)
        assert sum(now.at_peak.values()) == now.peak == max(phase.top for phase in now.phases)
        first, last = now.lines
        ran = "\n".join(peak_source(at).splitlines()[first - 1 : last])
        words = {"forward": "cross_entropy(", "backward": "backward()", "step": "step(", "zero_grad": "zero_grad("}
        assert words[now.phase] in ran
        assert max(map(len, peak_source(at).splitlines())) <= 120


@pytest.mark.parametrize(("batch", "width"), [(1, 128), (256, 16)])
def test_steps_are_taken_under_amp(batch: int, width: int) -> None:
    """A scaler that skipped the first step would leave the optimizer without state."""
    for amp in ("bf16", "fp16"):
        now = measure_peak(PeakSettings(amp=amp, batch=batch, width=width))
        assert now.phases[0].moments[0]["optimizer"] > 1.99 * now.phases[0].moments[0]["weights"]


def test_none_helps_by_where_zero_grad_stands() -> None:
    """As in minGPT's pull request 106: after the forward pass, None comes too late."""
    sgd = PeakSettings(optimizer="sgd")
    gradients = 4 * (6 * (64 * 64 + 64) + 64 * 10 + 10)

    def less(place: str) -> int:
        at = replace(sgd, place=place)
        return measure_peak(replace(at, set_to_none=False)).peak - measure_peak(at).peak

    assert less("before forward") == less("after step") == gradients - 4 * (64 * 10 + 10)
    assert less("before backward") < gradients / 2


def test_an_effect_is_the_peak_against_the_same_with_one_switch_put_back() -> None:
    start = PeakSettings()
    now = replace(start, amp="bf16", batch=32, place="before backward")
    there = {name: measure_peak(replace(now, **{name: getattr(start, name)})) for name in ("amp", "batch", "place")}
    found = {effect.name: effect.moved for effect in effects(now, start, measure_peak)}
    assert found == {name: measure_peak(now).peak - one_back.peak for name, one_back in there.items()}


def test_random_numbers_and_threads_are_left_as_they_were() -> None:
    measure_peak.cache_clear()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    threads = torch.get_num_threads()
    measure_peak(PeakSettings())
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == threads


# Pictures and words ---------------------------------------------------------------------------------------------------


def heights(drawing: Any, prefix: str) -> dict[str, float]:
    """The height in pixels of each part of the bar at the peak."""
    found = {}
    for name in CATEGORIES:
        marks = [mark for mark in drawing.marks if mark.id == f"{prefix} {name}"]
        if marks:
            found[name] = max(marks[0].points[1::2]) - min(marks[0].points[1::2])
    return found


def test_the_picture_is_as_high_as_the_bytes() -> None:
    instrument = peak(optimizer="sgd")
    instrument.turn("set_to_none", False)
    instrument.turn("accumulate", 4)
    now = measure_peak(PeakSettings(optimizer="sgd", set_to_none=False, accumulate=4))
    start = measure_peak(PeakSettings(optimizer="sgd"))
    panel = instrument._now().panels["memory"](400, 260)
    bars = heights(panel, "peak")
    per_byte = sum(bars.values()) / now.peak
    for name, size in now.at_peak.items():
        assert bars.get(name, 0.0) == pytest.approx(size * per_byte, abs=0.5)
    ground = max(panel.find("weights").points[:, 1])
    assert ground - min(panel.find("peak line").points[1::2]) == pytest.approx(now.peak * per_byte, abs=0.5)
    tops = [band.points[:, 2].min() for band in panel.marks if band.id in CATEGORIES]
    assert ground - min(tops) == pytest.approx(now.peak * per_byte, abs=0.5)
    outline = panel.find("start").points[1::2]
    assert ground - min(outline) == pytest.approx(start.peak * per_byte, abs=0.5)
    mark = panel.find("peak mark").points
    assert mark[1] < min(tops)
    assert panel.find("peak line").points[0] <= mark[0] <= panel.find("peak line").points[2]


def test_words_and_picture_tell_the_same_numbers() -> None:
    instrument = peak(batch=32)
    instrument.turn("amp", "bf16")
    instrument.turn("optimizer", "sgd")
    now = measure_peak(PeakSettings(batch=32, amp="bf16", optimizer="sgd"))
    said = bytes_text(now.peak)
    assert f"Peak {said} in {now.where}" in instrument.text
    memory, moved = instrument.drawings()
    assert f"▼ peak {said} in {now.where}" in memory.texts()
    for name, size in now.at_peak.items():
        if size > 0.01 * now.peak:
            assert f"{name} {bytes_text(size)}" in memory.texts()
            assert f"{name} {bytes_text(size)}" in instrument.text
    for effect in effects(PeakSettings(batch=32, amp="bf16", optimizer="sgd"), PeakSettings(batch=32), measure_peak):
        assert effect.text in instrument.text
        assert effect.words in moved.texts()
        assert effect.text.split(": ")[1] in moved.texts()
    assert instrument.frame()["lit"] == list(now.lines)
    assert sum(instrument.at_peak.values()) == now.peak


def test_nothing_is_compared_before_anything_is_changed() -> None:
    assert "Against" not in peak().text
    instrument = peak(amp="bf16")
    instrument.turn("amp", "off")
    assert re.search(r"AMP bf16 → off: \+[\d.]+ KiB", instrument.text)


def test_a_still_has_the_loop_beside_the_panels_and_marks_what_has_changed() -> None:
    instrument = peak(optimizer="sgd", set_to_none=False)
    panels, columns, loop = instrument._still(instrument._now())
    assert (len(panels), columns) == (1, 1), "nothing is compared yet"
    assert not loop or "\u2217" not in loop.texts()
    instrument.turn("set_to_none", True)
    (mountain,), _, loop = instrument._still(instrument._now())
    lines = peak_source(PeakSettings(optimizer="sgd")).splitlines()
    clear = next(number for number, line in enumerate(lines, 1) if "zero_grad" in line)
    assert loop
    assert {mark.id for mark in loop.marks if isinstance(mark, Text) and mark.text == "\u2217"} == {f"sign {clear}"}
    assert mountain.height == loop.height, "a bar for the only switch would tell nothing more than the words"
    instrument.turn("batch", 4)
    (mountain, bars), _, loop = instrument._still(instrument._now())
    assert loop
    assert mountain.height + bars.height >= loop.height
    assert bars.height < 0.5 * mountain.height


def test_the_hint_comes_with_the_switches_of_clearing() -> None:
    instrument = peak()
    instrument.turn("amp", "bf16")
    assert "minGPT#106" not in instrument.frame()["note"]
    instrument.turn("place", "before backward")
    assert "minGPT#106" in instrument.frame()["note"]
