"""The peak against a loop written here and the allocator's own events; pictures and words show the same numbers."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.profiler import ProfilerActivity, profile, record_function

from gradlab.course import peak
from gradlab.course.instruments.peak import PeakSettings, measure_peak, peak_source
from gradlab.formatting import bytes_text
from gradlab.memory import CATEGORIES

SLACK = 64
"""Bytes of numbers that a loop keeps, such as the loss before, which belong to no category."""
CASES = [  # each value of each switch at least once, and what depends on two of them
    {},
    {"width": 128, "depth": 2, "batch": 256, "optimizer": "sgd"},
    {"place": "before backward", "set_to_none": False},
    {"place": "after step", "accumulate": 4, "batch": 8},
    {"accumulate": 2, "place": "before backward", "batch": 1},
]


def plain_peak(settings: PeakSettings) -> int:
    """The most bytes that the allocator gave out during the second update of a loop written by hand."""
    gc.collect()
    with (
        torch.backends.mkldnn.flags(enabled=False),
        profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler,
    ):
        torch.manual_seed(1)
        modules: list[nn.Module] = []
        for _ in range(settings.depth):
            modules += [nn.Linear(settings.width, settings.width), nn.ReLU()]
        model = nn.Sequential(*modules, nn.Linear(settings.width, 10))
        kind: Any = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[settings.optimizer]
        optimizer = kind(model.parameters(), lr=0.1)
        size = settings.batch, settings.width
        window = [(torch.randn(size), torch.randint(10, size[:1])) for _ in range(settings.accumulate)]
        for update in (1, 2):
            with record_function(f"update {update}"):
                pass
            if settings.place == "before forward":
                optimizer.zero_grad(settings.set_to_none)
            for micro, (x, y) in enumerate(window):
                loss = cross_entropy(model(x), y)
                if settings.place == "before backward" and micro == 0:
                    optimizer.zero_grad(settings.set_to_none)
                (loss / settings.accumulate if settings.accumulate > 1 else loss).backward()
            optimizer.step()
            if settings.place == "after step":
                optimizer.zero_grad(settings.set_to_none)
    now = highest = 0
    for event in sorted(profiler.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            now += event.nbytes()
            highest = max(highest, now)
        elif event.name() == "update 2":
            highest = now
    return highest


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_peak_is_that_of_a_plain_loop(case: dict[str, Any]) -> None:
    settings = PeakSettings(**case)
    now = measure_peak(settings)
    assert abs(now.peak - plain_peak(settings)) <= SLACK
    assert sum(now.at_peak.values()) == now.peak == max(sum(phase.highest.values()) for phase in now.phases)
    first, last = now.lines
    ran = "\n".join(peak_source(settings).splitlines()[first - 1 : last])
    calls = {"forward": "cross_entropy(", "backward()": "backward()", "step()": "step(", "zero_grad()": "zero_grad("}
    assert calls[now.call] in ran


@pytest.mark.parametrize(("optimizer", "states"), [("sgd", 0), ("adam", 2)])
def test_gradients_and_optimizer_state_are_counted_to_the_byte(optimizer: str, states: int) -> None:
    settings = PeakSettings(optimizer=optimizer, width=32, depth=4, batch=16)
    weights = 4 * (4 * (32 * 32 + 32) + 32 * 10 + 10)
    last = measure_peak(settings).phases[-1].moments[-1]
    assert last["weights"] == last["gradients"] == weights
    counters = 4 * 10 if optimizer == "adam" else 0  # a step for each of the ten tensors
    assert last["optimizer"] == states * weights + counters
    assert last["inputs"] == 16 * 32 * 4 + 16 * 8


def test_none_helps_by_where_zero_grad_stands() -> None:
    """As in minGPT's pull request 106: after the forward pass, None comes too late."""
    sgd = PeakSettings(optimizer="sgd")
    gradients = 4 * (6 * (64 * 64 + 64) + 64 * 10 + 10)

    def less(position: str) -> int:
        settings = replace(sgd, place=position)
        return measure_peak(replace(settings, set_to_none=False)).peak - measure_peak(settings).peak

    assert less("before forward") == less("after step") == gradients - 4 * (64 * 10 + 10)
    assert less("before backward") < gradients / 2


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


def test_the_picture_is_as_high_as_the_bytes() -> None:
    instrument = peak(optimizer="sgd")
    instrument.turn("set_to_none", False)
    instrument.turn("accumulate", 4)
    now = measure_peak(PeakSettings(optimizer="sgd", set_to_none=False, accumulate=4))
    (panel,) = instrument.drawings()
    low = 0
    for name, size in now.at_peak.items():
        if size:
            assert set(panel.find(f"peak {name}").points[1::2]) == {low, low + size}, name
        low += size
    bands = np.array([panel.find(name).points.reshape(-1, 3) for name in CATEGORIES])
    total = np.nansum(bands[:, :, 2] - bands[:, :, 1], axis=0)
    assert total.max() == now.peak == panel.find("peak line").points[1]
    x, y = panel.find("peak mark").points
    assert y > now.peak, "the mark stands above the peak"
    begin, end = np.nanmax(bands[:, total == now.peak, 0], axis=0)[:2]
    assert begin < x < end
    outline = panel.find("start").points[1::2]
    assert np.nanmax(outline) == measure_peak(PeakSettings(optimizer="sgd")).peak
    spans = {span.texts[0]: (span.low, span.high) for span in panel.axes[0].x.spans}
    assert list(spans) == ["zero_grad", "step", "4 \u00d7 forward, backward"]
    assert spans["zero_grad"][1] == spans["4 \u00d7 forward, backward"][0], "zero_grad stands before forward"
    assert panel.axes[0].y.high > now.peak


def test_words_and_picture_tell_the_same_numbers() -> None:
    instrument = peak(batch=32)
    assert "Against" not in instrument.text
    instrument.turn("place", "after step")
    instrument.turn("optimizer", "sgd")
    settings = PeakSettings(batch=32, place="after step", optimizer="sgd")
    now = measure_peak(settings)
    size = bytes_text(now.peak)
    assert f"Peak {size} in {now.where}" in instrument.text
    (memory,) = instrument.drawings()
    assert f"▼ peak {size} in {now.where}" in memory.texts()
    for name, part in now.at_peak.items():
        if part > 0.01 * now.peak:
            assert f"{name} {bytes_text(part)}" in memory.texts()
            assert f"{name} {bytes_text(part)}" in instrument.text
    by = now.peak - measure_peak(PeakSettings(batch=32)).peak
    changes = "optimizer adam → sgd, zero_grad → after step"
    compared = f"{bytes_text(abs(by))} {'higher' if by > 0 else 'lower'}"
    assert f" Compared with the start ({changes}), the peak is {compared}." in instrument.text
    frame = instrument.frame()
    assert frame["lit"] == list(now.lines)
    assert "The dashed outline" in frame["note"]
    assert f"\u2504 with zeros {size}" not in memory.texts()
    assert sum(instrument.at_peak.values()) == now.peak


def test_a_still_has_the_loop_and_marks_what_has_changed() -> None:
    instrument = peak(optimizer="sgd", set_to_none=False)
    assert not instrument._picture()[0].drawing.changed, "nothing is compared yet"
    instrument.turn("set_to_none", True)
    loop, mountain = instrument._picture()
    lines = peak_source(PeakSettings(optimizer="sgd")).splitlines()
    assert list(loop.drawing.changed) == [number for number, line in enumerate(lines, 1) if "zero_grad" in line]
    assert mountain.height == loop.height
