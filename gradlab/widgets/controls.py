"""A bar of controls: one for each switch of the Recipe that is asked for, made from what the switch declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import ipywidgets as widgets

from .._process import lock
from ..forecast import GPUS
from ..loop import SWITCHES, Choice, OnOff, Positive, Recipe, Switch, Whole

CONTROLS = ("task", *SWITCHES, "card", "edit", "speed")
"""What ``controls=[...]`` may ask for; "card" is the graphics card that memory is held against, "edit" the button under
the code, "speed" the choice beside Play."""
DEFAULT = tuple(name for name in CONTROLS if name != "card")
"""What a Lab has unless it is asked for something else."""
_OFF = 0.0  # stands for None, which a Dropdown shows as an empty field


class Control:
    """One widget and the value that it shows."""

    def __init__(self, widget: Any, written: Callable[[Any], str] = str) -> None:
        """``written`` writes a value that is not among a Dropdown's options yet."""
        self.widget = widget
        self._written = written

    @property
    def value(self) -> Any:
        """What is chosen; None where the widget says "off"."""
        return None if self.widget.value == _OFF and self._has_off() else self.widget.value

    @value.setter
    def value(self, value: Any) -> None:
        shown = _OFF if value is None else value
        if isinstance(self.widget, widgets.Dropdown):
            pairs = [pair if isinstance(pair, tuple) else (pair, pair) for pair in self.widget.options]
            if shown not in [each for _, each in pairs]:
                pairs.append((self._written(value), shown))
                self.widget.options = sorted(pairs, key=lambda pair: pair[1]) if self._has_off() else pairs
        if self.widget.value != shown:
            self.widget.value = shown

    def _has_off(self) -> bool:
        return ("off", _OFF) in getattr(self.widget, "options", ())


class ControlBar:
    """Controls side by side that call ``on_change(name, value)`` when the learner turns one."""

    def __init__(self, controls: Mapping[str, Control], on_change: Callable[[str, Any], None]) -> None:
        """Lay them out in their order."""
        self._controls = dict(controls)
        self._on_change = on_change
        self._quiet = False
        self.widgets = {name: control.widget for name, control in self._controls.items()}
        for name, widget in self.widgets.items():
            widget.observe(self._turned(name), names="value")
        self.widget = widgets.Box(list(self.widgets.values()))
        self.widget.add_class("gradlab-bar")

    def show(self, recipe: Recipe, **others: Any) -> None:
        """Set every control to what is the case without calling anybody; ``others`` are those that are no switches."""
        with self.quiet():
            for name, control in self._controls.items():
                control.value = others[name] if name in others else getattr(recipe, name)
                if name in SWITCHES:  # greyed out where turning it would have no effect now
                    control.widget.disabled = not SWITCHES[name].matters(recipe)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Change widgets without calling anybody."""
        with lock:
            self._quiet = True
            try:
                yield
            finally:
                self._quiet = False

    def _turned(self, name: str) -> Callable[[Any], None]:
        def turned(change: Any) -> None:
            with lock:  # a click may come on another thread than the one that shows
                meant = not self._quiet
            if meant:
                self._on_change(name, self._controls[name].value)

        return turned


def lab_controls(
    names: Sequence[str], tasks: Sequence[str], on_change: Callable[[str, Any], None], *, own: str = "none"
) -> ControlBar:
    """Return the controls of a Lab that were asked for, in the usual order; ``own`` is the word for no card chosen."""
    makers: dict[str, Callable[[], Control]] = {
        "task": lambda: Control(dropdown("task", tasks)),
        **{name: partial(switch_control, name, switch) for name, switch in SWITCHES.items()},
        "card": lambda: Control(dropdown("card", [(own, ""), *((name, name) for name in GPUS)], 130)),
    }
    return ControlBar({name: make() for name, make in makers.items() if name in names}, on_change)


def switch_control(name: str, switch: Switch, label: str = "") -> Control:
    """Return the control of a switch, made from what is declared of it."""
    label = label or switch.label or name
    if isinstance(switch, OnOff):
        return Control(checkbox(label))
    if isinstance(switch, Choice):
        return Control(dropdown(label, switch.options, switch.width))
    if isinstance(switch, Whole):
        return Control(whole_number(label, switch.low, switch.high, switch.width))
    if isinstance(switch, Positive) and switch.offered:
        options = [("off", _OFF), *((switch.text(value), value) for value in switch.offered)]
        return Control(dropdown(label, options, switch.width), switch.text)
    return Control(widgets.FloatText(description=label, step=0.01, **_look(switch.width)))


def checkbox(label: str) -> Any:
    """Return a box to tick."""
    return widgets.Checkbox(description=label, indent=False, layout=widgets.Layout(width="auto"))


def dropdown(label: str, options: Sequence[Any], width: int = 140) -> Any:
    """Return a list to choose from, so many CSS pixels wide."""
    return widgets.Dropdown(description=label, options=list(options), **_look(width))


def whole_number(label: str, low: int, high: int, width: int) -> Any:
    """Return a field for a whole number within a range."""
    return widgets.BoundedIntText(description=label, min=low, max=high, **_look(width))


def _look(width: int) -> dict[str, Any]:
    return {"layout": widgets.Layout(width=f"{width}px"), "style": {"description_width": "initial"}}
