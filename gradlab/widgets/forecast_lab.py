"""The ForecastLab: will this model, trained this way, fit that card? Asked before anything is allocated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

from .._process import lock
from ..drawing import Drawing, draw, fade
from ..forecasting import GPUS, SHOWN, card_name, forecast, model_size, model_sizes, report_progress_to, usable_bytes
from ..loop import SWITCHES, Recipe, Whole
from ..scenes import Fit, Scene, fit_sentence, forecast_scene, need_sentence, suggestions, with_article
from .controls import Control, switch_control
from .instrument import Instrument, Settings, View, kept
from .live import Packed
from .requests import Actions, try_to

EVERY_CARD = "every card"
_CONTEXTS = [2**power for power in range(7, 18)]
_LARGEST_BATCH = 65_536
_BATCH = Whole(low=1, high=_LARGEST_BATCH)
_OUT_OF_DATE = "being worked out"
_TOLD_EVERY = 0.2  # seconds between two moves of the progress bar
_RECORDED_BATCHES = (1, 4, 16)
_SWITCHES = ("set_to_none", "accumulate", "amp", "optimizer")  # those that a forecast is asked about


@dataclass(frozen=True)
class ForecastSettings:
    """A model by the name of its size, and all that decides how much memory its training takes."""

    model: str = "gpt2-1.5b"
    batch: int = 1
    context: int = 1024
    checkpoint: bool = False
    recipe: Recipe = Recipe(optimizer="adamw", amp="bf16", lr=1e-4)  # noqa: RUF009 - frozen
    card: str = "H100"
    """The name of a card, or "every card"; it has no part in the forecast."""

    def __post_init__(self) -> None:
        """Check each; a context longer than the model reads is cut."""
        longest = model_size(self.model).max_context
        for name, most in (("batch", _LARGEST_BATCH), ("context", 2**20)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
                raise ValueError(f"ForecastLab: {name} must be a whole number, 1 to {most:,}, got {value!r}")
        if not isinstance(self.checkpoint, bool):
            raise ValueError(f"ForecastLab: checkpoint must be True or False, got {self.checkpoint!r}")
        if not isinstance(self.recipe, Recipe):
            raise TypeError(f"ForecastLab: recipe must be a gradlab.Recipe, got {self.recipe!r}")
        if not isinstance(self.card, str):  # usable_bytes would take a number of bytes
            raise ValueError(f"ForecastLab: card must be one of {', '.join(GPUS)} or {EVERY_CARD!r}, got {self.card!r}")
        if self.card != EVERY_CARD:
            object.__setattr__(self, "card", card_name(self.card) or self.card)
        object.__setattr__(self, "context", min(self.context, longest))

    def change(self, **changes: Any) -> ForecastSettings:
        """Return a copy with some changed; those of the recipe go by their own names."""
        own = {name: value for name, value in changes.items() if name in self.__dataclass_fields__}
        others = {name: value for name, value in changes.items() if name not in own}
        recipe = own.pop("recipe", self.recipe)
        return replace(self, **own, recipe=recipe.replace(**others) if others else recipe)

    @property
    def cards(self) -> list[tuple[str, int]]:
        """Name and usable bytes of each card that is asked about."""
        return [(name, usable_bytes(name)) for name in (SHOWN if self.card == EVERY_CARD else [self.card])]

    @property
    def largest_card(self) -> str:
        """The name of the largest of them."""
        return max(self.cards, key=lambda card: card[1])[0]

    @property
    def card_choices(self) -> list[str]:
        """The cards to choose from: those that are shown, and one's own."""
        return list(dict.fromkeys((*SHOWN, self.card, EVERY_CARD)))

    @property
    def question(self) -> tuple[Any, ...]:
        """What a forecast depends on."""
        return self.model, self.batch, self.context, self.checkpoint, self.recipe

    @property
    def words(self) -> str:
        """The settings in words, the usual ones left out."""
        recipe = self.recipe
        parts = [f"batch {self.batch:,}", f"context {self.context:,}"]
        parts += [f"accumulate {recipe.accumulate}"] * (recipe.accumulate > 1) + [recipe.optimizer]
        parts += [f"AMP {recipe.amp}"] * (recipe.amp != "off") + ["zero_grad off"] * (not recipe.zero_grad)
        parts += ["set_to_none off"] * (not recipe.set_to_none) + ["checkpointing"] * self.checkpoint
        return f"{self.model} with {', '.join(parts)}"

    def controls(self) -> list[Control]:
        """Return the controls as they stand, the contexts as far as the model reads."""
        reach = sorted({*(n for n in _CONTEXTS if n <= model_size(self.model).max_context), self.context})
        return [
            Control.choice("model", "model", self.model, model_sizes()),
            switch_control("batch", _BATCH, self.batch),
            Control.choice("context", "context", self.context, [(f"{n:,}", n) for n in reach]),
            *(switch_control(name, SWITCHES[name], getattr(self.recipe, name)) for name in _SWITCHES),
            Control.tick("checkpoint", "checkpointing", self.checkpoint),
            Control.choice("card", "card", self.card, self.card_choices),
        ]

    def turn(self, name: str, value: Any) -> ForecastSettings:
        """Return a copy with one control turned as it was chosen or typed; ValueError says what is allowed."""
        typed = _BATCH if name == "batch" else SWITCHES[name] if name in _SWITCHES else None
        return self.change(**{name: typed.read(f"Recipe: {name}", value) if typed else value})


class ForecastLab(Instrument):
    """Move model, batch and switches, and see the peak against a card.

    ``model`` is a published size ("gpt2-1.5b", "llama-8b", one of ``model_sizes()``), ``batch`` counts rows,
    ``context`` tokens in a row, ``checkpoint`` computes activations again in backward, ``card`` is the name of a card
    or "every card". Raises TypeError or ValueError that names what is wrong; later mistakes are told in words.

    What a turn asks for takes a while: until it is worked out, the forecast before is shown faint.
    """

    title = "Will it fit?"
    size = (400, 260)
    _kinds = (".png", ".svg")

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
        given = {"model": model, "batch": batch, "context": context, "checkpoint": checkpoint, "card": card}
        self.settings = ForecastSettings().change(**given, **({} if recipe is None else {"recipe": recipe}))
        """What is asked now."""
        self.result: Any = None
        """The newest Forecast, None before the first."""
        self._forecasts: dict[tuple[Any, ...], Any] = {}
        self._asked: ForecastSettings | None = None  # what the newest result is about
        self._failed: tuple[Any, ...] = ()  # the question that went wrong last
        self._before: Any = None
        self._extra = ""  # what was found out beside the forecast
        super().__init__()

    def controls(self) -> list[Control]:
        """Return the controls; which contexts there are depends on the model."""
        return self.settings.controls()

    def render(self, settings: Settings) -> View:
        """Return the peaks against the cards and, once there is a result, its timeline.

        As long as the result is about other settings than those chosen now, all of it is faint and marked.
        """
        panels = {name: partial(self._drawn, scene) for name, scene in self._scenes().items()}
        return View(panels, self._state(), self._extra)

    def packed(self) -> Packed:
        """Return it packed, for a page without a kernel: a few batches, contexts and optimizers, and all cards.

        Each of the forecasts is made now, which takes some seconds.
        """
        asked, optimizer = self.settings, self.settings.recipe.optimizer
        controls = [
            Control.slider("batch", "batch", asked.batch, sorted({*_RECORDED_BATCHES, asked.batch})),
            Control.choice("context", "context", asked.context, sorted({asked.context // 2 or 1, asked.context})),
            Control.choice("optimizer", "optimizer", optimizer, sorted({"adamw", "sgd", optimizer})),
            Control.choice("card", "card", asked.card, asked.card_choices),
        ]
        names = [control.name for control in controls]
        others = [dict(zip(names, at, strict=True)) for at in product(*(control.values for control in controls))]
        start = {control.name: control.start for control in controls}
        return self._pack(controls, [start, *(at for at in others if at != start)], self._forecast_at)

    def _forecast_at(self, at: Settings) -> View:
        """Return what is seen once the forecast for some settings has been made; nothing is changed here."""
        lab = type(self)()
        lab.settings, lab._forecasts = self.settings.change(**at), self._forecasts
        lab._forecast()
        return lab.render(at)

    def actions(self) -> Actions:
        """Return what the browser may ask for, and what does it."""
        return {
            **super().actions(),
            "forecast": lambda asked: self._begin(self._forecast),
            "largest": lambda asked: self._begin(self._find_largest),
        }

    # What the learner does --------------------------------------------------------------------------------------------

    def run(self, **changes: Any) -> ForecastLab:
        """Forecast, after some changes: ``lab.run(batch=4, amp="off", card="T4")``."""
        if changes:
            self._take(self.settings.change(**changes))
        self._attempt(self._forecast)
        return self

    def largest(self) -> ForecastLab:
        """Find the largest batch that fits the card (the largest card of several)."""
        self._attempt(self._find_largest)
        return self

    @property
    def text(self) -> str:
        """The result in words."""
        return " ".join(part for part in (self._state(), self._alarm, self._extra) if part)

    def __repr__(self) -> str:
        return self.text

    # How it is done ---------------------------------------------------------------------------------------------------

    def _attempt(self, action: Callable[[], object]) -> None:
        with lock:
            self._alarm = ""
            try_to(lambda: self._begin(action), self._fail)
        self._show()

    def _begin(self, action: Callable[[], object]) -> None:
        """Do something after which what was found out before holds no longer."""
        self._extra = ""
        action()

    def _turn(self, name: str, value: Any) -> None:
        """Move one control: a card, or settings that were forecast before, show at once; others when the hand rests."""
        self._extra = ""
        self._take(self.settings.turn(name, value))
        if self.settings.question in self._forecasts:
            self._forecast()

    def _take(self, settings: ForecastSettings) -> None:
        self.settings = settings
        self._controls = {control.name: control for control in self.controls()}
        self.values = {name: control.start for name, control in self._controls.items()}

    def _now(self) -> View:
        return self.render(self.values)

    def _more(self) -> dict[str, Any]:
        buttons = [["forecast", "Try again"]] * self._has_failed + [["largest", "Largest batch that fits", "main"]]
        more = ["What a forecast leaves out", getattr(self.result, "covers", "")]
        return {"more": more, "buttons": buttons, "then": "forecast" if self._is_due else ""}

    def _state(self) -> str:
        words = self.settings.words
        if self._has_failed:
            return f"There is no forecast for {words}."
        if self._asked is None or self._is_due:
            return f"Being worked out: {words}."
        return forecast_words(self._asked, self.result, self.settings)

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

    def _drawn(self, scene: Scene, width: int, height: int) -> Drawing:
        drawn = draw(scene, width, height)
        return fade(drawn, _OUT_OF_DATE) if self._out_of_date else drawn

    def _scenes(self) -> dict[str, Scene]:
        if self._asked is None:
            return {"fit": Fit([], self.settings.cards)}
        found = {"before": self._before, "now": self.result}
        bars = [(name, _parts(each, self.settings.largest_card)) for name, each in found.items() if each is not None]
        fit = Fit(bars, self.settings.cards, self._asked.model, _fits(self.result, self.settings))
        return {"fit": fit, "memory": forecast_scene(self.result.timeline)}

    def _forecast(self) -> None:
        asked = self.settings
        found = kept(self._forecasts, asked.question, partial(self._make, asked))
        self._failed = ()
        if self._asked is None or self._asked.question != asked.question:
            self._before = self.result
        self.result, self._asked = found, asked

    def _make(self, asked: ForecastSettings) -> Any:
        self._failed = asked.question  # until it is made
        with self._waiting():
            return forecast(
                asked.model, asked.recipe, batch=asked.batch, context=asked.context, checkpoint=asked.checkpoint
            )

    def _find_largest(self) -> None:
        self._forecast()
        name = self.settings.largest_card
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
                self.tell_progress(min(calls / max(expected, 1), 1.0))

        self.tell_progress(0.0)
        try:
            with report_progress_to(move):
                yield
        finally:
            self.tell_progress(None)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give the live view with its forecast, and beside it the picture and the words that a saved notebook keeps."""
        with lock:
            if self._is_due:
                self._alarm = self._extra = ""
                try_to(self._forecast, self._fail)
            return super()._repr_mimebundle_(include, exclude)


def forecast_words(asked: ForecastSettings, found: Any, now: ForecastSettings) -> str:
    """Say what a Forecast has to say: whether it fits, the peak and its cause, and what would help if it does not.

    ``now`` has the cards, which may be others than when it was asked.
    """
    fits, at, card = _fits(found, now), found.peak_at, now.largest_card
    need = found.need(card)
    said = (
        f"{fits[0].upper()}{fits[1:]}. {need_sentence(asked.words, found.peak, need.total, at.statement, at.module)}."
    )
    if found.fits(card):
        return said
    how = {"statement": at.statement, "checkpoint": asked.checkpoint, "batch": asked.batch}
    return f"{said} {suggestions(found.at_peak, max(need.room(usable_bytes(card)), 0), asked.recipe, **how)}"


def _fits(found: Any, settings: ForecastSettings) -> str:
    return fit_sentence([(name, holds, found.need(name).total) for name, holds in settings.cards])


def _parts(found: Any, card: str) -> dict[str, int]:
    """Return the bytes of a bar: all that ``Forecast.fits`` counts on this card."""
    need = found.need(card)
    return {**found.at_peak, "allocator": need.reserved - need.tensors, "CUDA": need.cuda_context}
