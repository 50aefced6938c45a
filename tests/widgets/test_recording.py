"""Recordings without a browser: every track is the run it says, frame by frame, and the page carries all of it."""

from __future__ import annotations

import base64
import gzip
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from gradlab import Lab, Recipe, Run, tasks
from gradlab.formatting import short
from gradlab.widgets import ForecastLab

pytestmark = pytest.mark.slow

torch.set_num_threads(1)


def shown_losses(track: Any) -> dict[int, str]:
    """The newest loss that its panel tells at each update, frames put together."""
    corner, losses = [""], {}
    for frame in track.frames:
        corner = frame.get("panels", {}).get("loss", {}).get("corner", corner)
        if frame.get("whole") or frame.get("end"):
            update = frame["updates"] if "updates" in frame else max(losses)
            losses[update] = "".join(corner[:1]).partition(" \u00b7 ")[0]
    return losses


def newest_loss(run: Run) -> str:
    return f"now {short(run.record.loss)}" if run.updates else ""


def test_every_number_is_that_of_a_run_made_anew() -> None:
    recording = Lab("line", Recipe(lr=0.01)).record(15, switches=["zero_grad"], marks=[5, 10])
    ways = {(track.parent, track.update, track.switch, track.value) for track in recording.tracks}
    assert {(None, 0, "", None), (0, 5, "zero_grad", False), (0, 10, "zero_grad", False)} <= ways
    assert len(ways) == 4  # and turned off at 5, on again at 10
    for track in recording.tracks:
        run = Run(tasks.line(), Recipe(lr=0.01))
        turns = turns_of(recording.tracks, track)
        wanted = {}
        for update in range(16):
            if update:
                run.provenance.measure = True
                run.advance(updates=1)
            for turn_update, name, value in turns:
                if turn_update == update:
                    run.switch(run.recipe.replace(**{name: value}))
            if update >= track.update:
                wanted[update] = newest_loss(run)
        assert shown_losses(track) == wanted


def turns_of(tracks: list[Any], track: Any) -> list[tuple[int, str, Any]]:
    """The turns on the way to a track, oldest first."""
    if track.parent is None:
        return []
    return [*turns_of(tracks, tracks[track.parent]), (track.update, track.switch, track.value)]


def test_a_recording_goes_through_what_the_lab_went_through() -> None:
    lab = Lab("digits").run(4).switch(lr=0.2).run(3)
    lab.edit(lab.runner.source.replace("loss.backward()", "(2 * loss).backward()")).run(5)
    track = lab.record(12).tracks[0]
    assert shown_losses(track)[12] == newest_loss(lab.runner)
    assert "(2 * loss).backward()" in [frame for frame in track.frames if "code" in frame][-1]["code"]["source"]


def test_the_page_holds_the_recording_and_its_statements(tmp_path: Path) -> None:
    page = Lab("bowl").record(20, switches=["zero_grad"], marks=[5]).save(tmp_path / "x.html").read_text("utf-8")
    assert "https://" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    packed = re.search(r'id="recording">([^<]*)<', page)
    assert packed
    left, turned = json.loads(gzip.decompress(base64.b64decode(packed[1])))["tracks"]
    assert [left["update"], turned["update"]] == [0, 5]
    assert turned["frames"][0]["whole"]
    first = left["frames"][: next(index for index, frame in enumerate(left["frames"]) if frame.get("end")) + 1]
    assert [frame["lit"][0] for frame in first if "lit" in frame] == [1, 3, 4, 5, 6, 7, 8, 9, 10]


def test_as_many_turns_as_asked_for_are_recorded() -> None:
    def lengths(turns: int) -> set[int]:
        tracks = Lab("line", Recipe(lr=0.01)).record(6, switches=["zero_grad"], marks=[1, 2], turns=turns).tracks
        return {len(turns_of(tracks, track)) for track in tracks}

    assert lengths(1) == {0, 1}
    assert lengths(2) == {0, 1, 2}


def test_a_switch_can_be_turned_before_the_first_update() -> None:
    recording = Lab("line", Recipe(lr=0.01)).record(6, switches={"optimizer": ["adam"]}, marks=[0], turns=1)
    start, turned = recording.tracks
    assert (turned.parent, turned.update, turned.switch, turned.value) == (0, 0, "optimizer", "adam")
    adam = Run(tasks.line(), Recipe(lr=0.01, optimizer="adam"))
    adam.advance(updates=6)
    losses = [shown_losses(track)[6] for track in (start, turned)]
    assert losses[1] == newest_loss(adam) != losses[0]


def test_a_forecast_lab_is_packed_at_some_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("gradlab.widgets.forecast_lab")
    forecast = module.forecast("gpt2", batch=2, context=8)  # for all settings; other tests check their own
    monkeypatch.setattr(module, "forecast", lambda *what, **more: forecast)
    lab = ForecastLab("gpt2", batch=2, context=8)
    packed = lab.packed()
    contents = json.loads(gzip.decompress(base64.b64decode(packed.packed)))
    assert contents["settings"][0] == {"batch": 2, "context": 8, "optimizer": "adamw", "card": "H100"}
    assert {settings["batch"] for settings in contents["settings"]} == {1, 2, 4, 16}
    assert "batch 2, context 8, adamw" in packed.alt
    controls = contents["frames"][0]["controls"]
    assert [control["name"] for control in controls] == ["batch", "context", "optimizer", "card"]
    assert lab.result is None
