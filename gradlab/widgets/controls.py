"""The switches: one labelled control for each field of the Recipe, one for the task and one for the card."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets

from ..forecast.gpus import GPUS
from ..recipe import AMP, LONGEST_WINDOW, OPTIMIZERS, Recipe

NAMES = (
    "task",
    "zero_grad",
    "set_to_none",
    "accumulate",
    "divide_loss",
    "amp",
    "clip",
    "optimizer",
    "lr",
    "card",
    "edit",
    "speed",
)
"""What ``controls=[...]`` may ask for; "card" is the graphics card that memory is held against, "edit" the button under
the code, "speed" the choice beside Play."""
USUAL = tuple(name for name in NAMES if name != "card")
"""What a Lab has unless it is asked for something else."""
_CLIPS = (0.1, 0.5, 1.0, 5.0)
_NO_CLIP = 0.0  # stands for None, which a Dropdown shows as an empty field


class Controls:
    """A bar of switches that shows a recipe and calls ``on_change(field, value)`` when the learner turns one."""

    def __init__(
        self, names: Sequence[str], tasks: Sequence[str], on_change: Callable[[str, Any], None], *, own: str = "none"
    ) -> None:
        """Make the controls that were asked for, in the usual order; ``own`` is the word for no card chosen."""
        self._on_change = on_change
        self._quiet = False
        self._showing = threading.RLock()  # a click may come on another thread than the one that shows
        makers: dict[str, Callable[[], Any]] = {
            "task": lambda: _choice("task", tasks),
            "zero_grad": lambda: _switch("zero_grad"),
            "set_to_none": lambda: _switch("set_to_none"),
            "accumulate": lambda: widgets.BoundedIntText(
                description="accumulate", min=1, max=LONGEST_WINDOW, layout=_wide(140), style=_fitting()
            ),
            "divide_loss": lambda: _switch("divide_loss"),
            "amp": lambda: _choice("AMP", AMP, 120),
            "clip": lambda: _choice("clip", _clips(_CLIPS), 115),
            "optimizer": lambda: _choice("optimizer", OPTIMIZERS, 180),
            "lr": lambda: widgets.FloatText(description="lr", step=0.01, layout=_wide(110), style=_fitting()),
            "card": lambda: _choice("card", [(own, ""), *((name, name) for name in GPUS)], 130),
        }
        self.widgets = {name: make() for name, make in makers.items() if name in names}
        for name, widget in self.widgets.items():
            widget.observe(self._turned(name), names="value")
        self.widget = widgets.Box(list(self.widgets.values()))
        self.widget.add_class("gradlab-bar")

    def show(self, task: str, recipe: Recipe, card: str = "") -> None:
        """Set every control to what is the case, without calling anybody; ``card`` is a name, "" for none chosen."""
        with self._showing:
            self._quiet = True
            try:
                others = {"task": task, "card": card}
                for name, widget in self.widgets.items():
                    value: Any = others[name] if name in others else getattr(recipe, name)
                    if name == "clip":
                        value = value or _NO_CLIP
                        if value not in (_NO_CLIP, *_CLIPS):
                            widget.options = _clips((*_CLIPS, value))
                    if name == "task" and value not in widget.options:
                        widget.options = [*widget.options, value]
                    widget.value = value
                # What a switch cannot change now is greyed out, so that nobody waits for an effect.
                self._enable("set_to_none", recipe.zero_grad)
                self._enable("divide_loss", recipe.accumulate > 1)
            finally:
                self._quiet = False

    def _enable(self, name: str, on: bool) -> None:
        if name in self.widgets:
            self.widgets[name].disabled = not on

    def _turned(self, name: str) -> Callable[[Any], None]:
        def turned(change: Any) -> None:
            with self._showing:
                meant = not self._quiet
            if meant:
                value = change["new"]
                self._on_change(name, None if name == "clip" and value == _NO_CLIP else value)

        return turned


def _clips(norms: Sequence[float]) -> list[tuple[str, float]]:
    return [("off", _NO_CLIP), *((f"{norm:g}", norm) for norm in sorted(set(norms)))]


def _switch(name: str) -> Any:
    return widgets.Checkbox(description=name, indent=False, layout=widgets.Layout(width="auto"))


def _choice(name: str, options: Sequence[Any], width: int = 140) -> Any:
    return widgets.Dropdown(description=name, options=list(options), layout=_wide(width), style=_fitting())


def _wide(pixels: int) -> widgets.Layout:
    return widgets.Layout(width=f"{pixels}px")


def _fitting() -> dict[str, str]:
    return {"description_width": "initial"}
