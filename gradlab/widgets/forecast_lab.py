"""The ForecastLab, which compares the memory that training a model needs with the memory of a GPU, in advance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from .._checks import on_off, whole_number
from .._process import lock
from ..drawing import draw
from ..forecasting import SHOWN, card_name, forecast, model_size, model_sizes, usable_bytes
from ..loop import SWITCHES, Recipe, Whole
from ..scenes import Fit, Scene, fit_sentence, memory_scene, need_sentence, suggestions, with_article
from .controls import Control, switch_control
from .instrument import MAX_CACHED, Actions, Instrument, Settings, View
from .live import Packed

_CONTEXTS = [2**power for power in range(7, 18)]
_LARGEST_BATCH = 65_536
_BATCH = Whole(low=1, high=_LARGEST_BATCH)
_RECORDED_BATCHES = (1, 4, 16)
_SWITCHES = ("set_to_none", "accumulate", "amp", "optimizer")  # switches of a Recipe that a ForecastLab can change


@dataclass(frozen=True)
class ForecastSettings:
    """The settings of a ForecastLab: a model, how it is trained, and the card that the memory is compared with.

    Settings that differ only in the card are equal, because the forecast is the same for all cards.
    """

    model: str = "gpt2-1.5b"
    batch: int = 1
    context: int = 1024
    checkpoint: bool = False
    recipe: Recipe = Recipe(optimizer="adamw", amp="bf16", lr=1e-4)  # noqa: RUF009 - frozen
    card: str = field(default="H100", compare=False)

    def __post_init__(self) -> None:
        """Check the settings, replace ``card`` with a standard name, and limit ``context`` to the model's maximum."""
        longest = model_size(self.model).max_context
        for name, most in (("batch", _LARGEST_BATCH), ("context", 2**20)):
            number = whole_number(f"ForecastLab: {name}", getattr(self, name), 1, most, kind=ValueError)
            object.__setattr__(self, name, number)
        on_off("ForecastLab: checkpoint", self.checkpoint, kind=ValueError)
        if not isinstance(self.recipe, Recipe):
            raise TypeError(f"ForecastLab: recipe must be a gradlab.Recipe, got {self.recipe!r}")
        object.__setattr__(self, "card", card_name(self.card) or str(self.card))
        object.__setattr__(self, "context", min(self.context, longest))

    def change(self, **changes: Any) -> ForecastSettings:
        """Return a copy with ``changes``, which name fields of the settings or switches of the recipe."""
        switches = {name: changes.pop(name) for name in list(changes) if name not in self.__dataclass_fields__}
        recipe = changes.pop("recipe", self.recipe)
        return replace(self, **changes, recipe=recipe.replace(**switches) if switches else recipe)

    @property
    def summary(self) -> str:
        """A phrase for the settings without the card, such as ``gpt2-1.5b with batch 1, context 1,024, adamw``."""
        recipe = self.recipe
        parts = [f"batch {self.batch:,}", f"context {self.context:,}"]
        parts += [f"accumulate {recipe.accumulate}"] * (recipe.accumulate > 1) + [recipe.optimizer]
        parts += [f"AMP {recipe.amp}"] * (recipe.amp != "off") + ["zero_grad off"] * (not recipe.zero_grad)
        parts += ["set_to_none off"] * (not recipe.set_to_none) + ["checkpointing"] * self.checkpoint
        return f"{self.model} with {', '.join(parts)}"


class ForecastLab(Instrument):
    """An interactive memory forecast: controls for the model and its training, and the peak next to a GPU's memory.

    Until a new forecast is ready, the lab shows the previous forecast faintly. The lab also shows errors.

    Args:
        model: A name from ``model_sizes()``, such as "gpt2-1.5b" or "llama-8b".
        recipe: A Recipe; None for AdamW with bf16.
        batch, context: The number of sequences in a batch, and of tokens in a sequence.
        checkpoint: Whether activations are recomputed in the backward pass.
        card: The name of a GPU, such as "H100", or a memory size, such as "24 GB".

    Raises:
        TypeError, ValueError: An argument is invalid; the message names what is allowed.
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
        values = {"model": model, "batch": batch, "context": context, "checkpoint": checkpoint, "card": card}
        self.settings = ForecastSettings().change(**values, **({} if recipe is None else {"recipe": recipe}))
        self.result: Any = None  # the newest Forecast, or None before the first
        self._forecasts: dict[ForecastSettings, Any] = {}
        self._forecast_settings: ForecastSettings | None = None  # the settings of ``result``
        self._failed: ForecastSettings | None = None  # the settings for which the newest forecast failed, if it did
        self._before: Any = None  # the Forecast before ``result``, shown for comparison
        self._extra = ""  # sentence on the largest batch that fits, or "" until requested for the current settings
        super().__init__()

    def controls(self) -> list[Control]:
        """Return the controls, which start at the current settings and offer contexts up to the model's maximum."""
        now = self.settings
        contexts = sorted({*(n for n in _CONTEXTS if n <= model_size(now.model).max_context), now.context})
        return [
            Control.choice("model", "model", now.model, model_sizes()),
            switch_control("batch", _BATCH, now.batch),
            Control.choice("context", "context", now.context, [(f"{n:,}", n) for n in contexts]),
            *(switch_control(name, SWITCHES[name], getattr(now.recipe, name)) for name in _SWITCHES),
            Control.tick("checkpoint", "checkpointing", now.checkpoint),
            Control.choice("card", "card", now.card, list(dict.fromkeys((*SHOWN, now.card)))),
        ]

    def render(self, settings: Settings) -> View:
        """Return a View of the peaks and, after a forecast, of memory over time; outdated pictures are faint."""
        panels = {name: draw(scene) for name, scene in self._scenes().items()}
        if self._forecast_settings not in (None, self.settings):
            pending = "calculating"
            for name, drawing in panels.items():
                panels[name] = replace(drawing, faint=True, corner=(pending,), words=f"{pending}. {drawing.words}")
        return View(panels, self._state(), self._extra)

    def packed(self) -> Packed:
        """Return a recording of forecasts for a few batch sizes, contexts and optimizers, each with all cards."""
        now, optimizer = self.settings, self.settings.recipe.optimizer
        controls = [
            Control.slider("batch", "batch", now.batch, sorted({*_RECORDED_BATCHES, now.batch})),
            Control.choice("context", "context", now.context, sorted({now.context // 2 or 1, now.context})),
            Control.choice("optimizer", "optimizer", optimizer, sorted({"adamw", "sgd", optimizer})),
            self.controls()[-1],
        ]
        names = [control.name for control in controls]
        every = [dict(zip(names, each, strict=True)) for each in product(*(control.values for control in controls))]
        start = {control.name: control.start for control in controls}
        return self._pack(controls, [start, *(values for values in every if values != start)], self._forecast_at)

    def _forecast_at(self, values: Settings) -> View:
        """Return the View of a forecast at ``values`` of the controls; the state of this lab does not change."""
        lab = type(self)()
        lab.settings, lab._forecasts = self.settings.change(**values), self._forecasts
        lab._forecast()
        return lab.render(values)

    def actions(self) -> Actions:
        """Return a mapping from the kind of a browser's request to the function that handles the request."""
        return {
            **super().actions(),
            "forecast": lambda request: self._show_working(self._forecast),
            "largest": lambda request: self._show_working(self._find_largest),
        }

    def run(self, **changes: Any) -> ForecastLab:
        """Change settings, forecast, and return this lab, as in ``lab.run(batch=4, amp="off", card="T4")``."""
        self._apply_settings(self.settings.change(**changes))
        self._attempt(self._forecast)
        return self

    @property
    def text(self) -> str:
        """The forecast or its status, followed by any error and, if requested, by the largest batch that fits."""
        return " ".join(part for part in (self._state(), self._alarm, self._extra) if part)

    def __repr__(self) -> str:
        return self.text

    def _turn(self, name: str, value: Any) -> None:
        """Set the control ``name``. If the forecast is cached, as after a change of the card only, show it at once."""
        self._extra = ""
        switch = _BATCH if name == "batch" else SWITCHES[name] if name in _SWITCHES else None
        self._apply_settings(self.settings.change(**{name: switch.read(name, value) if switch else value}))
        if self.settings in self._forecasts:
            self._forecast()

    def _apply_settings(self, settings: ForecastSettings) -> None:
        self.settings = settings
        self._controls = {control.name: control for control in self.controls()}
        self.values = {name: control.start for name, control in self._controls.items()}

    def _now(self) -> View:
        return self.render(self.values)

    def _more(self) -> dict[str, Any]:
        buttons = [["largest", "Largest batch that fits", "main"]]
        if self._failed == self.settings:
            buttons.insert(0, ["forecast", "Try again"])
        more = ["What a forecast leaves out", getattr(self.result, "covers", "")]
        return {"more": more, "buttons": buttons, "then": "forecast" if self._is_due else ""}

    def _state(self) -> str:
        """Return sentences that say whether the training fits the card, or that the forecast is pending or failed."""
        if self._failed == self.settings:
            return f"There is no forecast for {self.settings.summary}."
        settings, result, card = self._forecast_settings, self.result, self.settings.card
        if settings is None or self._is_due:
            return f"Calculating: {self.settings.summary}."
        need, peak_at, fits = result.need(card), result.peak_at, self._fits()
        needs = need_sentence(settings.summary, result.peak, need.total, peak_at.statement, peak_at.module)
        answer = f"{fits[0].upper()}{fits[1:]}. {needs}."
        if result.fits(card):
            return answer
        how = {"statement": peak_at.statement, "checkpoint": settings.checkpoint, "batch": settings.batch}
        return f"{answer} {suggestions(result.at_peak, max(need.room(usable_bytes(card)), 0), settings.recipe, **how)}"

    def _fits(self) -> str:
        card = self.settings.card
        return fit_sentence(card, usable_bytes(card), self.result.need(card).total)

    @property
    def _is_due(self) -> bool:
        return self.settings not in (self._failed, self._forecast_settings)

    def _scenes(self) -> dict[str, Scene]:
        cards = [(self.settings.card, usable_bytes(self.settings.card))]
        if self._forecast_settings is None:
            return {"fit": Fit([], cards)}
        bars = []
        for name, result in (("before", self._before), ("now", self.result)):
            if result is not None:  # a bar adds up to ``need.total``, which Forecast.fits compares with the card
                need = result.need(self.settings.card)
                more = {"allocator": need.reserved - need.tensors, "CUDA": need.total - need.reserved}
                bars.append((name, {**result.at_peak, **more}))
        fit = Fit(bars, cards, self._forecast_settings.model, self._fits())
        return {"fit": fit, "memory": memory_scene([(2, self.result.timeline)], "forecast, tensors only")}

    def _forecast(self) -> None:
        """Set ``result`` to the forecast for the current settings, from the cache if possible, and clear ``_extra``."""
        self._extra = ""
        settings = self.settings
        if settings not in self._forecasts:
            self._failed = settings  # a forecast counts as failed until it succeeds
            sizes: dict[str, Any] = {name: getattr(settings, name) for name in ("batch", "context", "checkpoint")}
            self._forecasts[settings] = forecast(settings.model, settings.recipe, **sizes)
            if len(self._forecasts) > MAX_CACHED:
                self._forecasts.pop(next(iter(self._forecasts)))
        self._failed = None
        if self._forecast_settings != settings:
            self._before = self.result
        self.result, self._forecast_settings = self._forecasts[settings], settings

    def _find_largest(self) -> None:
        self._forecast()
        card = self.settings.card
        most = self.result.largest("batch", on=card)
        answer = f"The largest batch that fits {with_article(card)} with these settings: {most:,}."
        self._extra = answer if most else f"Not even a batch of 1 fits {with_article(card)} with these settings."

    def _show_working(self, action: Callable[[], None]) -> None:
        """Run ``action`` while the browser shows a progress bar and disables the lab's buttons."""
        push = (lambda message: None) if self._front is None else self._front.push
        push({"working": True})
        try:
            action()
        finally:
            push({"working": False})

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        with lock:
            if self._is_due:
                self._attempt(self._forecast)
            return super()._repr_mimebundle_(include, exclude)
