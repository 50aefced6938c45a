"""The ForecastLab: will this model, trained this way, fit that card? Asked before anything is allocated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._process import lock
from ..drawing import Drawing, draw, fade, to_png, to_svg
from ..forecast import forecast, report_progress_to
from ..loop import Recipe
from ..scenes import Fit, Scene, forecast_scene, with_article
from .export import LiveView, mimebundle
from .forecast_controls import ForecastSettings, answer, forecast_controls, forecast_values, read_typed
from .frames import SIZE, FrameWriter
from .requests import PanelSize, panel_size

_KEPT = 64  # forecasts
_OUT_OF_DATE = "being worked out"
_TOLD_EVERY = 0.2  # seconds between two moves of the progress bar


class ForecastLab:
    """Move model, batch and switches, and see the peak against a card.

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
        """Lay it out; the forecast is made when it is first shown."""
        given = {"model": model, "batch": batch, "context": context, "checkpoint": checkpoint, "card": card}
        self.settings = ForecastSettings().change(**given, **({} if recipe is None else {"recipe": recipe}))
        """What is asked now."""
        self.result: Any = None
        """The newest Forecast, None before the first."""
        self._known: dict[tuple[Any, ...], Any] = {}
        self._asked: ForecastSettings | None = None  # what the newest result is about
        self._failed: tuple[Any, ...] = ()  # the question that went wrong last
        self._before: Any = None
        self._extra = self._alarm = ""
        self._size = SIZE
        self._writer = FrameWriter()
        self._view: LiveView | None = None
        self._answering = False

    # What the browser asks --------------------------------------------------------------------------------------------

    def handle(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what a request asks (``front/README.md``), and return the answer; nothing is ever raised."""
        with lock:
            do, self._answering = request.get("do"), True
            if do == "hello":
                self._writer.start_over()
            elif do == "turn":
                self._writer.tell_again(str(request.get("name")))
                self.turn(str(request.get("name")), request.get("value"))
            elif do == "forecast":
                self.run()
            elif do == "largest":
                self.largest()
            elif do == "size":
                self._guarded(lambda: self._resize(request), quiet=True)
            self._answering = False
            return {"n": request.get("n"), "client": request.get("client"), "frames": [self.frame()]}

    # What the learner does --------------------------------------------------------------------------------------------

    def turn(self, name: str, value: Any) -> None:
        """Move one control: a card, or settings that were forecast before, show at once; others when the hand rests."""
        self._guarded(lambda: self._change(**{name: read_typed(name, value)}))

    def run(self, **changes: Any) -> ForecastLab:
        """Forecast, after some changes: ``lab.run(batch=4, amp="off", card="T4")``."""
        if changes:
            self.settings = self.settings.change(**changes)
        self._guarded(self._forecast)
        self._show()
        return self

    def largest(self) -> ForecastLab:
        """Find the largest batch that fits the card (the largest card of several)."""
        self._guarded(self._find_largest)
        self._show()
        return self

    @property
    def text(self) -> str:
        """The result in words."""
        return " ".join(part for part in (self._state(), self._alarm, self._extra) if part)

    # What is shown ----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the pictures as ``.png`` or ``.svg``; return the path."""
        kinds = (".png", ".svg")
        if not isinstance(path, (str, Path)) or Path(path).suffix not in kinds:
            raise ValueError(f"ForecastLab.save: path must end in {' or '.join(kinds)}, got {str(path)!r}")
        target = Path(path)
        if target.suffix == ".png":
            target.write_bytes(to_png(self.drawings()))
        else:
            target.write_text(to_svg(self.drawings()), encoding="utf-8")
        return target

    def drawings(self, size: PanelSize = SIZE) -> list[Drawing]:
        """Return what is shown now: the peaks against the cards and, once there is a result, its timeline.

        As long as the result is about other settings than those chosen now, all of it is faint and marked.
        """
        return list(self._drawings(size).values())

    def frame(self) -> dict[str, Any]:
        """Return what has changed since the frame before."""
        settings = self.settings
        return self._writer.write(
            self._drawings(self._size),
            state=self._state(),
            alarm=self._alarm,
            note=self._extra,
            more=["What a forecast leaves out", getattr(self.result, "covers", "")],
            buttons=[*[["forecast", "Try again"]] * self._has_failed, ["largest", "Largest batch that fits", "main"]],
            then="forecast" if self._is_due else "",
            controls=forecast_controls(settings),
            values=forecast_values(settings),
            off=[],
        )

    def _state(self) -> str:
        words = self.settings.words
        if self._has_failed:
            return f"There is no forecast for {words}."
        if self._asked is None or self._is_due:
            return f"Being worked out: {words}."
        return answer(self._asked, self.result, self.settings.cards)

    @property
    def _has_failed(self) -> bool:
        return self._failed == self.settings.question

    @property
    def _is_due(self) -> bool:
        """Whether a forecast for the settings chosen now is still to be made."""
        return not self._has_failed and (self._asked is None or self._out_of_date)

    @property
    def _out_of_date(self) -> bool:
        """Whether the result is about other settings than those chosen now."""
        return self._asked is not None and self._asked.question != self.settings.question

    def _drawings(self, size: PanelSize) -> dict[str, Drawing]:
        drawn = {name: draw(scene, size.width, size.height) for name, scene in self._scenes().items()}
        return {name: fade(each, _OUT_OF_DATE) for name, each in drawn.items()} if self._out_of_date else drawn

    def _scenes(self) -> dict[str, Scene]:
        bars = [("before", self._before), ("now", self.result)]
        title = self._asked.model if self._asked else ""
        fit = Fit([(name, each.at_peak) for name, each in bars if each is not None], self.settings.cards, title)
        scenes: dict[str, Scene] = {"fit": fit}
        if self.result is not None:
            card = self.settings.cards[0] if len(self.settings.cards) == 1 else None
            scenes["memory"] = forecast_scene(self.result.timeline, card)
        return scenes

    # How it is done ---------------------------------------------------------------------------------------------------

    def _guarded(self, action: Callable[[], object], *, quiet: bool = False) -> None:
        """Do something for the learner; what goes wrong is said in words, and ``quiet`` leaves the words before."""
        with lock:
            if not quiet:
                self._alarm = self._extra = ""
            try:
                action()
            except KeyboardInterrupt:
                self._alarm = "Interrupted."
            except Exception as error:  # a traceback under a notebook cell helps nobody
                known = isinstance(error, ValueError)
                self._alarm = str(error).removeprefix("Recipe: ") if known else f"{type(error).__name__}: {error}"

    def _resize(self, request: Mapping[str, Any]) -> None:
        self._size = panel_size(request)

    def _show(self) -> None:
        """Tell the browser, if the answer to its own request does not."""
        if self._view is not None and not self._answering:
            self._view.front.push(self.frame())

    def _change(self, **changes: Any) -> None:
        self.settings = self.settings.change(**changes)
        if self.settings.question in self._known:
            self._forecast()

    def _forecast(self) -> None:
        asked = self.settings
        found = self._known.pop(asked.question, None)
        if found is None:
            self._failed = asked.question  # until it is made
            with self._waiting():
                found = forecast(
                    asked.model, asked.recipe, batch=asked.batch, context=asked.context, checkpoint=asked.checkpoint
                )
        self._failed = ()
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
                last = now
                self._tell_progress(min(calls / max(expected, 1), 1.0))

        self._tell_progress(0.0)
        try:
            with report_progress_to(move):
                yield
        finally:
            self._tell_progress(None)

    def _tell_progress(self, share: float | None) -> None:
        if self._view is not None:
            self._view.front.send({"progress": share})

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give the live view, and beside it the picture and the words that a saved notebook keeps."""
        with lock:
            if self._is_due:
                self._guarded(self._forecast)
            if self._view is None:
                self._view = LiveView("instrument", self.handle)
            return mimebundle(self._view, to_png(self.drawings()), self.text, self.text)
