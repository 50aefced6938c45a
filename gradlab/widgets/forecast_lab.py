"""The ForecastLab: will this model, trained this way, fit that card? Asked before anything is allocated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from .._process import lock
from ..forecast import forecast, report_progress_to
from ..loop import Recipe
from ..scenes import Fit, forecast_scene, with_article
from ..views import Canvas, compose, panel_for
from .export import mimebundle
from .forecast_controls import ForecastControls, ForecastSettings, answer
from .theme import style_sheet
from .words import words

_KEPT = 64  # forecasts
_TOLD_EVERY = 0.2  # seconds between two moves of the progress bar


class ForecastLab:
    """Move model, batch, window and switches, press Forecast, and see the peak against a card.

    ``model`` is a published size ("gpt2-1.5b", "llama-8b", "llama-70b", "llama-405b"), ``batch`` counts rows,
    ``context`` tokens in a row, ``checkpoint`` computes activations again in backward, ``card`` is the name of a card
    or "every card". Raises TypeError or ValueError that names what is wrong; later mistakes are told in words.
    """

    def __init__(
        self,
        model: str = "gpt2-1.5b",
        recipe: Recipe | None = None,
        *,
        batch: int = 1,
        context: int = 1024,
        checkpoint: bool = False,
        card: str = "H100",
    ) -> None:
        """Lay it out; nothing is forecast yet."""
        given = {"model": model, "batch": batch, "context": context, "checkpoint": checkpoint, "card": card}
        self.settings = ForecastSettings().change(**given, **({} if recipe is None else {"recipe": recipe}))
        """What is asked now."""
        self.result: Any = None
        """The newest Forecast, None before the first."""
        self._known: dict[tuple[Any, ...], Any] = {}
        self._asked: ForecastSettings | None = None  # what the newest result is about
        self._before: Any = None
        self._extra = self._alarm = ""
        self._panels: dict[type, Canvas[Any]] = {}
        self._pngs: list[bytes] = []
        self.knobs = ForecastControls(self.turn)
        self._go = _button("Forecast", "play", self.run, "primary")
        self._most = _button("Largest batch that fits", "search", self.largest)
        self._bar = widgets.FloatProgress(min=0.0, max=1.0, layout=widgets.Layout(width="150px", visibility="hidden"))
        buttons = widgets.Box([self._go, self._most, self._bar])
        buttons.add_class("gradlab-bar")
        self._images = widgets.Box()
        self._images.add_class("gradlab-panels")
        body = widgets.Box([self._images])
        body.add_class("gradlab-body")
        self.words = widgets.HTML()
        self.widget = widgets.VBox([widgets.HTML(style_sheet()), self.knobs.widget, buttons, body, self.words])
        self.widget.add_class("gradlab")
        self._draw()

    # What the learner does --------------------------------------------------------------------------------------------

    def turn(self, name: str, value: Any) -> None:
        """Move one control: a card, or settings that were forecast before, show at once; others wait for the button."""
        self._guarded(lambda: self._change(**{name: value}))

    def run(self, **changes: Any) -> ForecastLab:
        """Forecast, after some changes: ``lab.run(batch=4, amp="off", card="T4")``."""
        if changes:
            self.settings = self.settings.change(**changes)
        self._guarded(self._forecast)
        return self

    def largest(self) -> ForecastLab:
        """Find the largest batch that fits the card (the largest card of several)."""
        self._guarded(self._find_largest)
        return self

    @property
    def text(self) -> str:
        """The result in words."""
        return " ".join(part for part in (self._state(), self._alarm, self._extra) if part)

    # What is shown ----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the pictures as ``.png``; return the path."""
        if not isinstance(path, (str, Path)) or Path(path).suffix != ".png":
            raise ValueError(f"ForecastLab.save: path must end in .png, got {str(path)!r}")
        Path(path).write_bytes(compose(self._pngs, 2))
        return Path(path)

    def _state(self) -> str:
        if self.result is None or self._asked is None:
            return f"{self.settings.words}: press Forecast."
        said = answer(self._asked, self.result, self.settings.cards)
        changed = self._asked.question != self.settings.question
        return f"{said} The settings have changed since: press Forecast." if changed else said

    def _draw(self) -> None:
        self.knobs.show_settings(self.settings)
        bars = [("before", self._before), ("now", self.result)]
        title = self._asked.model if self._asked else ""
        scenes: list[Any] = [Fit([(n, f.at_peak) for n, f in bars if f is not None], self.settings.cards, title)]
        if self.result is not None:
            card = self.settings.cards[0] if len(self.settings.cards) == 1 else None
            scenes.append(forecast_scene(self.result.timeline, card))
        self._pngs = []
        for scene in scenes:
            panel = self._panels.setdefault(type(scene), panel_for(type(scene))())
            panel.update(scene)
            self._pngs.append(panel.png())
        if len(self._images.children) != len(self._pngs):
            self._images.children = [widgets.Image(value=png, format="png") for png in self._pngs]
        for image, png in zip(self._images.children, self._pngs, strict=True):
            if image.value != png:
                image.value = png
        note = " ".join(part for part in (self._extra, getattr(self.result, "covers", "")) if part)
        self.words.value = words(self._state(), self._alarm, note, live=True)

    # How it is done ---------------------------------------------------------------------------------------------------

    def _guarded(self, action: Callable[[], object]) -> None:
        """Do something for the learner; what goes wrong is said in words."""
        with lock:
            self._alarm = self._extra = ""
            try:
                action()
            except KeyboardInterrupt:
                self._alarm = "Interrupted."
            except Exception as error:  # a traceback under a notebook cell helps nobody
                self._alarm = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            self._draw()

    def _change(self, **changes: Any) -> None:
        self.settings = self.settings.change(**changes)
        if self.settings.question in self._known:
            self._forecast()

    def _forecast(self) -> None:
        asked = self.settings
        found = self._known.pop(asked.question, None)
        if found is None:
            with self._waiting():
                found = forecast(
                    asked.model, asked.recipe, batch=asked.batch, context=asked.context, checkpoint=asked.checkpoint
                )
        self._known[asked.question] = found  # the newest last
        while len(self._known) > _KEPT:
            self._known.pop(next(iter(self._known)))
        if self._asked is None or self._asked.question != asked.question:
            self._before = self.result
        self.result, self._asked = found, asked

    def _find_largest(self) -> None:
        self._forecast()
        name, _ = max(self.settings.cards, key=lambda card: card[1])
        with self._waiting():
            most = self.result.largest("batch", on=name)
        self._extra = (
            f"The largest batch that fits {with_article(name)} with these settings: {most:,}."
            if most
            else f"Not even a batch of 1 fits {with_article(name)} with these settings."
        )

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Show how far a forecast is, and take no second click meanwhile."""
        last = 0.0

        def move(calls: int, expected: int) -> None:
            nonlocal last
            if (now := time.monotonic()) - last > _TOLD_EVERY:
                last, self._bar.value = now, min(calls / max(expected, 1), 1.0)

        buttons = (self._go, self._most)
        for button in buttons:
            button.disabled = True
        self._bar.value, self._bar.layout.visibility = 0.0, "visible"
        try:
            with report_progress_to(move):
                yield
        finally:
            self._bar.layout.visibility = "hidden"
            for button in buttons:
                button.disabled = False

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give the live view, and beside it the picture and the words that a saved notebook keeps."""
        with lock:
            return mimebundle(self.widget.model_id, compose(self._pngs, 2), self.text)


def _button(text: str, icon: str, on_click: Callable[[], object], style: str = "") -> widgets.Button:
    button = widgets.Button(description=text, icon=icon, button_style=style, layout=widgets.Layout(width="auto"))
    button.on_click(lambda _: on_click())
    return button
