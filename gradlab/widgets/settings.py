"""What a forecast is asked about: the controls of the FitLab, checked, as one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ipywidgets as widgets

from ..forecast.gpus import GPUS, usable_bytes
from ..forecast.model_sizes import model_size, model_sizes
from ..recipe import AMP, LONGEST_WINDOW, OPTIMIZERS, Recipe
from ..views.verdict import helps, needs, verdict

EVERY_CARD = "every card"
_CONTEXTS = [2**power for power in range(7, 18)]
_LARGEST_BATCH = 65_536


@dataclass(frozen=True)
class Settings:
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
                raise ValueError(f"FitLab: {name} must be a whole number, 1 to {most:,}, got {value!r}")
        if not isinstance(self.checkpoint, bool):
            raise ValueError(f"FitLab: checkpoint must be True or False, got {self.checkpoint!r}")
        if not isinstance(self.recipe, Recipe):
            raise TypeError(f"FitLab: recipe must be a gradlab.Recipe, got {self.recipe!r}")
        if self.card != EVERY_CARD:
            usable_bytes(self.card)
        object.__setattr__(self, "context", min(self.context, longest))

    def change(self, **changes: Any) -> Settings:
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
        parts += [f"window {recipe.accumulate}"] * (recipe.accumulate > 1) + [recipe.optimizer]
        parts += [f"AMP {recipe.amp}"] * (recipe.amp != "off") + ["zero_grad off"] * (not recipe.zero_grad)
        parts += ["set_to_none off"] * (not recipe.set_to_none) + ["checkpointing"] * self.checkpoint
        return f"{self.model} with {', '.join(parts)}"


def answer(asked: Settings, found: Any, cards: Sequence[tuple[str, int]]) -> str:
    """Say what a Forecast has to say: the peak, its cause, whether it fits, and what would help if not."""
    peak, at = found.at_peak, found.peak_at
    said = f"{needs(asked.words, peak, at.statement, at.module)}: {verdict(peak, cards)}."
    holds = max(holds for _, holds in cards)
    if sum(peak.values()) <= holds:
        return said
    how = {"statement": at.statement, "checkpoint": asked.checkpoint, "batch": asked.batch}
    return f"{said} {helps(peak, holds, asked.recipe, **how)}"


class Knobs:
    """The controls of the FitLab; ``on_change(name, value)`` is called when the learner moves one."""

    def __init__(self, on_change: Callable[[str, Any], None]) -> None:
        """Make them."""
        self._on_change = on_change
        self._quiet = False
        self.widgets: dict[str, Any] = {
            "model": _choice("model", model_sizes(), 165),
            "batch": _number("batch", _LARGEST_BATCH, 120),
            "context": _choice("context", _CONTEXTS, 155),
            "accumulate": _number("window", LONGEST_WINDOW, 120),
            "set_to_none": _switch("set_to_none"),
            "amp": _choice("AMP", AMP, 120),
            "optimizer": _choice("optimizer", OPTIMIZERS, 180),
            "checkpoint": _switch("checkpointing"),
            "card": _choice("card", [*GPUS, EVERY_CARD], 150),
        }
        for name, widget in self.widgets.items():
            widget.observe(self._moved(name), names="value")
        self.widget = widgets.Box(list(self.widgets.values()))
        self.widget.add_class("gradlab-bar")

    def show(self, settings: Settings) -> None:
        """Set every control to what is asked, without calling anybody."""
        self._quiet = True
        try:
            reach = sorted({*(n for n in _CONTEXTS if n <= model_size(settings.model).max_context), settings.context})
            if list(self.widgets["context"].options) != reach:
                self.widgets["context"].options = reach
            for name, widget in self.widgets.items():
                value = getattr(settings if hasattr(settings, name) else settings.recipe, name)
                if widget.value != value:
                    widget.value = value
            self.widgets["set_to_none"].disabled = not settings.recipe.zero_grad
        finally:
            self._quiet = False

    def _moved(self, name: str) -> Callable[[Any], None]:
        def moved(change: Any) -> None:
            if not self._quiet:
                self._on_change(name, change["new"])

        return moved


def _choice(name: str, options: Any, width: int) -> Any:
    return widgets.Dropdown(description=name, options=list(options), layout=_wide(width), style=_fitting())


def _number(name: str, most: int, width: int) -> Any:
    return widgets.BoundedIntText(description=name, min=1, max=most, layout=_wide(width), style=_fitting())


def _switch(name: str) -> Any:
    return widgets.Checkbox(description=name, indent=False, layout=widgets.Layout(width="auto"))


def _wide(pixels: int) -> widgets.Layout:
    return widgets.Layout(width=f"{pixels}px")


def _fitting() -> dict[str, str]:
    return {"description_width": "initial"}
