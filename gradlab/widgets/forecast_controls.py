"""What a forecast is asked about, checked, as one value; and its controls as plain data for the browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..forecast import GPUS, model_size, model_sizes, usable_bytes
from ..loop import SWITCHES, Recipe, Whole
from ..scenes import fit_sentence, need_sentence, suggestions
from .controls import Control, choice_control, switch_control, switch_values, whole_control

EVERY_CARD = "every card"
_CONTEXTS = [2**power for power in range(7, 18)]
_LARGEST_BATCH = 65_536
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
            usable_bytes(self.card)
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
        return list(GPUS.items()) if self.card == EVERY_CARD else [(self.card, GPUS[self.card])]

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


def answer(asked: ForecastSettings, found: Any, cards: Sequence[tuple[str, int]]) -> str:
    """Say what a Forecast has to say: whether it fits, the peak and its cause, and what would help if it does not."""
    peak, at = found.at_peak, found.peak_at
    fits = fit_sentence(peak, cards)
    said = f"{fits[0].upper()}{fits[1:]}: {need_sentence(asked.words, peak, at.statement, at.module)}."
    holds = max(holds for _, holds in cards)
    if sum(peak.values()) <= holds:
        return said
    how = {"statement": at.statement, "checkpoint": asked.checkpoint, "batch": asked.batch}
    return f"{said} {suggestions(peak, holds, asked.recipe, **how)}"


def forecast_controls(settings: ForecastSettings) -> list[Control]:
    """Describe the controls of the ForecastLab, the contexts as far as the model reads."""
    reach = sorted({*(n for n in _CONTEXTS if n <= model_size(settings.model).max_context), settings.context})
    return [
        choice_control("model", "model", _same(model_sizes())),
        whole_control("batch", "batch", 1, _LARGEST_BATCH),
        choice_control("context", "context", [(f"{n:,}", n) for n in reach]),
        *(switch_control(n, SWITCHES[n], getattr(settings.recipe, n)) for n in _SWITCHES),
        {"name": "checkpoint", "label": "checkpointing", "kind": "tick"},
        choice_control("card", "card", _same([*GPUS, EVERY_CARD])),
    ]


def forecast_values(settings: ForecastSettings) -> dict[str, Any]:
    """Return what the controls show."""
    switches = {name: value for name, value in switch_values(settings.recipe).items() if name in _SWITCHES}
    own = {name: getattr(settings, name) for name in ("model", "context", "checkpoint", "card")}
    return {**own, "batch": str(settings.batch), **switches}


def read_typed(name: str, value: Any) -> Any:
    """Return a value as it was chosen or typed; ValueError says what is allowed."""
    if name in _SWITCHES:
        return SWITCHES[name].read(name, value)
    if name == "batch":
        return Whole(low=1, high=_LARGEST_BATCH).read("batch", value)
    return value


def _same(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, name) for name in names]
