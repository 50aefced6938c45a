"""Frames: changes add up to the whole, nothing is sent twice, and frames do not grow in long runs."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
import torch
from page import Page

from gradlab import Lab, Recipe

torch.set_num_threads(1)


@pytest.mark.parametrize("task", ["bowl", "digits"])
def test_a_whole_frame_is_all_the_changes_before_it(task: str) -> None:
    page = Page(Lab(task))
    play = {"count": 8, "every": 16}
    steps: list[tuple[str, dict[str, Any]]] = [
        ("statement", {}), ("frames", {**play, "updates": 1}), ("turn", {"name": "amp", "value": "fp16"}),
        ("frames", {**play, "updates": 3}), ("turn", {"name": "accumulate", "value": "4"}), ("update", {}),
        ("frames", play), ("press", {"what": "batch 2"}),
        ("edit", {"text": "for x in batches:"}), ("turn", {"name": "amp", "value": "off"}), ("reset", {}),
        ("frames", {**play, "seconds": 0.01}),
    ]  # fmt: skip
    for do, more in steps:
        page.ask(do, **more)
        number = page.shown["f"]
        page.ask("pause")  # what was not due while playing
        shown = page.snapshot()
        page.ask("hello")
        assert page.frames[0]["whole"] is True
        assert page.shown["f"] == number + 2
        assert {key: value for key, value in page.snapshot().items() if value != shown[key]} == {}, do


def test_the_page_shows_what_a_lab_of_the_same_state_shows() -> None:
    page = Page(Lab("digits", Recipe(lr=0.1, zero_grad=False))).play(25).ask("pause")
    other = Page(Lab("digits", Recipe(lr=0.1, zero_grad=False)).run(25))
    for name in ("loss", "picture"):
        assert vars(page.panels[name]) == vars(other.panels[name])
    assert page.panels["gradient"].words == other.panels["gradient"].words  # its scale tells what was seen before
    assert page.panels["gradient"].texts() == other.panels["gradient"].texts()
    assert (page.state, page.alarm, page.code()) == (other.state, other.alarm, other.code())


def test_no_frame_tells_again_what_has_not_changed() -> None:
    page = Page(Lab("digits"))
    page.ask("pause")
    assert set(page.frames[0]) == {"f"}
    page.play(60)
    keys = {key for _ in range(10) for frame in page.play(10).frames for key in frame}
    assert keys <= {"f", "updates", "state", "panels", "lit"}


def frame_bytes(page: Page, count: int) -> list[int]:
    """The lengths of ``count`` frames while playing, sorted."""
    sizes: list[int] = []
    while len(sizes) < count:
        page.play(1)
        sizes += [len(json.dumps(frame)) for frame in page.frames]
    return sorted(sizes)


LATER = 100_000 if os.environ.get("GRADLAB_NIGHTLY") else 5_000  # updates


@pytest.mark.slow
def test_frames_do_not_grow_with_the_number_of_updates() -> None:
    lab = Lab("bowl", Recipe(lr=0.05), panels=["loss", "gradient", "landscape"])
    lab.runner.advance(updates=1000)
    early, whole = frame_bytes(Page(lab), 40), Page(lab).bytes
    lab.runner.advance(updates=LATER - lab.runner.updates)
    late = frame_bytes(Page(lab), 40)
    assert sum(late) <= 1.2 * sum(early)
    assert late[-1] <= 1.2 * early[-1]
    assert Page(lab).bytes <= 1.2 * whole
