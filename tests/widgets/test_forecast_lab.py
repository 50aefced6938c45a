"""The ForecastLab without a browser: its forecasts, view and output; the forecast itself is mostly a stand-in."""

from __future__ import annotations

import base64
import io
import random
import re
from pathlib import Path
from typing import Any

import ipywidgets
import pytest
import torch
from page import Page
from PIL import Image

import gradlab.widgets.forecast_lab as fit_widget
from gradlab import Recipe
from gradlab.drawing import draw
from gradlab.forecasting import GPUS, Forecast, cards, forecast, usable_bytes
from gradlab.forecasting.cards import Need
from gradlab.formatting import bytes_text
from gradlab.memory.timeline import MemoryPoint
from gradlab.scenes.kinds import Fit
from gradlab.scenes.sentences import memory_scene, suggestions
from gradlab.widgets.forecast_lab import ForecastLab

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
GIB = 2**30
RECIPE = Recipe(optimizer="adamw", amp="bf16", lr=1e-4)
ORDER = ("weights", "gradients", "optimizer", "activations", "inputs", "other")  # in which amounts are given
ASKED = ("llama-8b", RECIPE, 1, 1024, False)


def amounts(*gib: float) -> dict[str, int]:
    return {name: int(size * GIB) for name, size in zip(ORDER, [*gib, *[0] * 6], strict=False)}


class StandIn:
    """In the place of ``forecast``: counts calls; the peak is 10 GiB of weights, as much of gradients and 5 GiB of
    activations a row, and a card must have half as much again and 1 GiB.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.error: BaseException | None = None
        self.scene: Any = None
        """The newest scene of the panel of the peaks."""

    def draw(self, scene: Any) -> Any:
        """Replaces ``draw``: it also keeps the scene of the bars."""
        if isinstance(scene, Fit):
            self.scene = scene
        return draw(scene)

    def bars(self) -> list[str]:
        """The sums of the bars, with their names."""
        return [f"{name} {bytes_text(sum(at_peak.values()))}" for name, at_peak in self.scene.bars]

    def __call__(self, what: str, recipe: Recipe, *, batch: int, context: int, checkpoint: bool) -> Any:
        self.calls.append((what, recipe, batch, context, checkpoint))
        if self.error is not None:
            raise self.error
        at_peak = amounts(10, 10, 0, 5 * batch / (10 if checkpoint else 1))
        point = MemoryPoint("backward", "layers.31", at_peak, at_peak, 2)
        result = Forecast.__new__(Forecast)
        vars(result).update(
            at_peak=at_peak, peak=sum(at_peak.values()), peak_at=point, covers="Not counted: workspaces.",
            timeline=[MemoryPoint("zero_grad", "", amounts(10), amounts(10), 1), point], parameters=7,
        )  # fmt: skip
        vars(result)["need"] = need = lambda card: Need(result.peak, 0)
        vars(result)["largest"] = lambda switch, on: max(0, (need(on).room(GPUS[on]) - 20 * GIB) // (5 * GIB))
        return result


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand_in = StandIn()
    monkeypatch.setattr(fit_widget, "forecast", stand_in)
    monkeypatch.setattr(fit_widget, "draw", stand_in.draw)
    monkeypatch.setattr(cards, "RESERVE_MARGIN", 0.5)
    monkeypatch.setattr(cards, "CUDA_CONTEXT_BYTES", GIB)
    return stand_in


def test_the_browser_asks_by_itself_and_the_answer_comes_first(stand_in: StandIn) -> None:
    lab = ForecastLab("llama-8b")
    page = Page(lab).turn("batch", "4")
    assert stand_in.calls == [], "a turn is answered at once"
    assert page.shown["then"] == "forecast"
    assert page.state.startswith("Calculating: llama-8b with batch 4")
    page.ask(page.shown["then"])
    assert stand_in.calls == [("llama-8b", RECIPE, 4, 1024, False)]
    assert page.shown["then"] == ""
    assert page.state.startswith(
        "Fits an H100: 77 % of its 79.1 GiB. llama-8b with batch 4, context 1,024, adamw, AMP bf16 needs 61 GiB: "
        "40 GiB of tensors at the peak (while backward ran, in layers.31) and 21 GiB more "
    )
    assert page.state == lab.text
    assert list(page.panels) == ["fit", "memory"]
    assert "61" in page.panels["fit"].all_words()
    assert "now: CUDA's context 1 GiB" in page.panels["fit"].all_words()
    shown = dict(page.panels)
    page.turn("batch", "2").ask("forecast")
    assert all(vars(page.panels[name]) != vars(panel) for name, panel in shown.items())
    assert (page.note, page.shown["more"]) == ("", ["What a forecast leaves out", "Not counted: workspaces."])
    assert stand_in.bars() == ["before 61 GiB", "now 46 GiB"]
    assert page.ask("hello").state == lab.text


def test_nothing_more_is_asked_once_a_question_is_answered(stand_in: StandIn) -> None:
    page = Page(ForecastLab("llama-8b")).ask("forecast")
    for name, value in (("card", "T4"), ("batch", "x")):
        assert page.turn(name, value).shown["then"] == ""
    stand_in.error = KeyboardInterrupt()
    assert page.turn("batch", "2").ask("forecast").shown["then"] == "", "or it would go wrong for ever"
    assert page.state.startswith("There is no forecast for llama-8b with batch 2")
    assert [label for _, label, *_ in page.shown["buttons"]] == ["Try again", "Largest batch that fits"]
    assert page.turn("batch", "3").shown["then"] == "forecast"
    stand_in.error = None
    assert page.turn("batch", "2").ask("forecast").state.startswith("Does not fit a T4")
    assert [label for _, label, *_ in page.shown["buttons"]] == ["Largest batch that fits"]


TURNS = {
    "model": ("llama-70b", 0, "llama-70b"),
    "batch": ("3", 2, 3),
    "context": (512, 3, 512),
    "accumulate": ("4", 1, RECIPE.replace(accumulate=4)),
    "optimizer": ("sgd", 1, RECIPE.replace(optimizer="sgd")),
    "checkpoint": (True, 4, True),
}


@pytest.mark.parametrize("name", TURNS)
def test_every_control_changes_what_is_asked_once(stand_in: StandIn, name: str) -> None:
    value, index, expected = TURNS[name]
    page = Page(ForecastLab("llama-8b").run()).turn(name, value)
    assert page.values[name] == value
    assert page.state.startswith("Calculating")
    assert stand_in.calls == [ASKED]
    page.ask("forecast")
    assert stand_in.calls[1:] == [(*ASKED[:index], expected, *ASKED[index + 1 :])]
    assert len(stand_in.bars()) == 2


def test_what_is_out_of_date_is_faint_until_it_is_true_again(stand_in: StandIn) -> None:
    lab = ForecastLab("llama-8b").run()
    page = Page(lab)
    fresh = lab.drawings()
    page.turn("accumulate", "4")
    for old in lab.drawings():
        assert old.faint
        assert old.corner == ("calculating",)
        assert old.words.startswith("calculating. ")
    assert "calculating" in page.panels["fit"].all_words()
    page.turn("accumulate", "1")
    assert [(now.texts(), now.faint) for now in lab.drawings()] == [(each.texts(), False) for each in fresh]
    assert "calculating" not in page.panels["fit"].all_words()
    page.turn("card", "T4")  # which has no part in the forecast
    assert "calculating" not in page.panels["fit"].all_words()


def test_a_known_answer_shows_at_once_beside_the_one_before(stand_in: StandIn) -> None:
    page = Page(ForecastLab("llama-8b").run().run(batch=2).run(batch=8))
    assert stand_in.bars() == ["before 46 GiB", "now 91 GiB"]
    assert page.turn("batch", "1").state.startswith("Fits")
    page.ask("forecast")  # the same again is no change
    assert stand_in.bars() == ["before 91 GiB", "now 38.5 GiB"]
    assert "Does not fit a T4: 2.6 times its 14.6 GiB." in page.turn("card", "T4").state
    assert len(stand_in.calls) == 3


def test_the_largest_batch_is_told_until_something_changes(stand_in: StandIn) -> None:
    lab = ForecastLab("llama-8b", card="A100-40")
    page = Page(lab).ask("largest")
    assert page.note.startswith("The largest batch that fits an A100-40 with these settings: 1.")
    assert "largest" not in page.turn("card", "T4").note
    page.ask("largest")
    assert lab.text.endswith("Not even a batch of 1 fits a T4 with these settings.")
    assert page.note.startswith("Not even a batch of 1 fits a T4")
    assert len(stand_in.calls) == 1


ERRORS: list[tuple[BaseException, str]] = [
    (ValueError("forecast: context must be 1 to 1024, got 4096"), "forecast: context must be 1 to 1024, got 4096"),
    (RuntimeError("no such <kernel>"), "RuntimeError: no such <kernel>"),
    (KeyboardInterrupt(), "Interrupted."),
]


@pytest.mark.parametrize(("error", "message"), ERRORS)
def test_what_goes_wrong_is_a_sentence_and_the_lab_lives_on(stand_in: StandIn, error: Any, message: str) -> None:
    page = Page(ForecastLab("llama-8b").run())
    stand_in.error = error
    page.turn("batch", "2").ask("forecast")
    assert page.alarm == message
    assert "Try again" in str(page.shown["buttons"])
    assert stand_in.bars() == ["now 38.5 GiB"]
    stand_in.error = None
    page.ask("forecast")
    assert page.alarm == ""
    assert stand_in.bars() == ["before 38.5 GiB", "now 46 GiB"]


@pytest.fixture
def busy_lab(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> tuple[ForecastLab, list[dict[str, Any]]]:
    """A lab in a cell, and the messages that it sends without a request."""
    lab, sent = ForecastLab("llama-8b"), []
    lab._repr_mimebundle_()
    monkeypatch.setattr(lab._front, "send", lambda message, buffers=None: sent.append(message))
    return lab, sent


def test_that_it_is_worked_out_is_told_to_the_browser(stand_in: StandIn, busy_lab: Any) -> None:
    lab, sent = busy_lab
    page = Page(lab).turn("batch", "5").ask("forecast")
    assert sent == [{"working": True}, {"working": False}]
    stand_in.error = RuntimeError("no")
    page.turn("batch", "2").ask("forecast")
    assert sent[2:] == [{"working": True}, {"working": False}], "the bar goes and the buttons are free again"


def test_no_more_context_is_offered_than_the_model_reads(stand_in: StandIn) -> None:
    lab = ForecastLab("llama-8b", context=8192)
    page = Page(lab).turn("model", "gpt2-1.5b")
    most = lambda: max(value for _, value in page.control("context")["options"])  # noqa: E731
    assert page.values["context"] == lab.settings.context == most() == 1024
    page.turn("model", "llama-405b")
    assert most() == 131_072
    assert Page(ForecastLab("llama-8b", context=3000)).values["context"] == 3000


@pytest.mark.parametrize("typed", ["0", "abc", "65537", None])
def test_a_batch_typed_badly_is_told_and_taken_back(stand_in: StandIn, typed: Any) -> None:
    lab = ForecastLab("llama-8b", batch=3)
    page = Page(lab).turn("batch", typed)
    assert "batch must be " in page.alarm
    assert f"got {typed!r}" in page.alarm
    assert lab.settings.batch == 3
    assert page.frames[0]["values"] == {"batch": "3"}


def test_random_requests_never_raise(stand_in: StandIn) -> None:
    chance = random.Random(0)
    page = Page(ForecastLab("llama-8b"))
    values = [None, True, 0, 1, 2.5, 10**400, "", "x", "1", "T4", "off", "adamw", "gpt2-1.5b", [], {}, "\ud800", 1e300]
    names = ["model", "batch", "context", "accumulate", "card", "amp", "checkpoint", "lr", "recipe", [], None, 3]
    for _ in range(300):
        do = chance.choice(["turn", "turn", "forecast", "largest", "hello", "fly", None, []])
        page.ask(do, name=chance.choice(names), value=chance.choice(values))
    page.turn("batch", "2").ask("forecast")
    assert "needs" in page.state


def test_the_saved_output_is_answered_with_a_picture_and_words(stand_in: StandIn, tmp_path: Path) -> None:
    lab = ForecastLab("llama-8b")
    data, shown = lab._repr_mimebundle_()
    assert len(stand_in.calls) == 1
    assert data["text/plain"].startswith("Fits an H100")
    picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    assert shown["image/png"]["width"] * 2 == picture.size[0] >= 1200
    assert shown["image/png"]["alt"] == data["text/plain"] == lab.text
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] in ipywidgets.widgets.widget._instances
    assert lab.save(tmp_path / "fit.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in lab.save(tmp_path / "fit.svg").read_text()


ADAMW = Recipe(optimizer="adamw", lr=1e-4)
ZEROS = Recipe(set_to_none=False, amp="bf16")
HELPS: list[tuple[dict[str, int], Recipe, dict[str, Any], str]] = [
    (amounts(100, 0, 0, 9), ADAMW, {}, r"The weights alone are 100 GiB"),
    (amounts(50, 50, 0, 9), ADAMW, {}, r"Weights and gradients alone are 100 GiB: one such card has room for 79 GiB"),
    (
        amounts(20, 20, 40, 60), ADAMW, {},
        r"help: checkpointing, AMP or a shorter context \(activations: 60 GiB\); sgd, .*\(optimizer: 40 GiB\)\.$",
    ),
    (amounts(20, 20, 0, 60), Recipe(amp="bf16"), {"checkpoint": True, "batch": 8}, "a smaller batch and a larger acc"),
    (amounts(20, 20, 0, 60), ZEROS, {"statement": "autocast"}, r"set_to_none, so that .*\(gradients: 20 GiB\)"),
    (amounts(20, 20, 40, 0, 0, 20), ADAMW, {"statement": "step"}, r"help: sgd.*; foreach=False.*\(other: 20 GiB\)"),
    # in step there are gradients whatever was done to the old ones
    (amounts(20, 20, 40, 0, 0, 9), ZEROS.replace(optimizer="sgd"), {"statement": "step"}, r"^Nearly all of it"),
    (amounts(40, 39, 1, 1), ADAMW, {}, r"Nearly all of it is weights, gradients and optimizer state: 80 GiB"),
]  # fmt: skip


@pytest.mark.parametrize(("at_peak", "recipe", "more", "expected"), HELPS)
def test_only_what_can_help_is_proposed(at_peak: Any, recipe: Recipe, more: Any, expected: str) -> None:
    text = suggestions(at_peak, 79 * GIB, recipe, **{"statement": "backward", "checkpoint": False, "batch": 1, **more})
    assert re.search(expected, text), text


@pytest.mark.nightly
def test_what_is_said_to_help_does_help() -> None:
    """Each proposal for a real forecast makes the real peak smaller."""
    lab = ForecastLab("llama-8b", Recipe(optimizer="adamw", lr=1e-4), batch=8, context=1024, card="T4").run(
        card="A100-80"
    )
    assert "Does not fit an A100-80" in lab.text
    for text, changes in (
        ("checkpointing", {"checkpoint": True}),
        ("AMP", {"amp": "bf16"}),
        ("a smaller batch and a larger accumulate", {"batch": 4, "accumulate": 2}),
        ("sgd", {"optimizer": "sgd"}),
    ):
        assert text in lab.text
        new = lab.settings.change(**changes)
        other = forecast(new.model, new.recipe, batch=new.batch, context=1024, checkpoint=new.checkpoint)
        assert other.peak < lab.result.peak, text


def test_the_picture_of_a_forecast_has_its_points() -> None:
    result = forecast("llama-8b", Recipe(lr=1e-4), batch=1, context=64)
    scene = memory_scene([(2, result.timeline)])
    assert list(scene.statements)[-2:] == ["backward", "step"]
    totals = [sum(values) for values in zip(*scene.categories.values(), strict=True)]
    assert max(totals) == result.peak
    assert totals[0::2] == [point.top for point in result.timeline]
    assert totals[1::2] == [point.total for point in result.timeline]
    first = scene.starts[list(scene.statements).index("backward")]
    assert result.timeline[first // 2].statement == "backward"
    assert result.timeline[first // 2 - 1].statement != "backward"


@pytest.mark.parametrize("card", [pytest.param("H100", marks=pytest.mark.nightly), "1 MB"])
def test_the_bars_and_the_words_say_what_fits_says(card: str) -> None:
    """At the last batch that fits, and at the next one, whose tensors alone would still fit."""
    lab = ForecastLab("gpt2", context=128, card=card).run()
    most = lab.result.largest("batch", on=card)
    for batch, fits in ((most, True), (most + 1, False)):
        if batch:
            lab.run(batch=batch)
            assert lab.result.fits(card) is fits
            assert lab.text.startswith("Fits") is fits, lab.text
            height = sum(lab._scenes()["fit"].bars[-1][1].values())
            assert height == lab.result.need(card).total
            assert (height <= usable_bytes(card)) is fits
    if card != "1 MB":
        assert lab.result.peak < usable_bytes(card)
