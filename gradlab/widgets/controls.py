"""The controls of labs and instruments, each declared once; its check and what the browser is told follow from that."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from .. import tasks
from ..forecasting import SHOWN
from ..loop import SWITCHES, Choice, OnOff, Positive, Run, Switch, Whole
from .frames import coloured

CONTROLS = ("task", *SWITCHES, "card", "edit", "speed")
"""What ``controls=[...]`` of a Lab may ask for; "card" is the graphics card that memory is held against, "edit" the
button under the code, "speed" the choice beside Play."""
DEFAULT = tuple(name for name in CONTROLS if name != "card")
"""What a Lab has unless it is asked for something else."""
SPEEDS = {"statements": 0.0, "1 update/s": 1.0, "10 updates/s": 10.0, "60 updates/s": 60.0, "full speed": None}
"""Words to updates a second: 0 for a statement at a time, None for as fast as it goes."""
USUAL_SPEED = "60 updates/s"
"""At which a Lab plays unless it is asked for another."""
UNSWITCHED = "unswitched"
"""The tick of every lab with switches and a loss: whether it shows how the loss goes on without the newest switch."""
MOST_PIECES = 8
"""How long an order may be."""
Kind = Literal["tick", "choice", "whole", "number", "slider", "order"]


@dataclass(frozen=True)
class Control:
    """One control: its name, the words beside it, the value it starts at, and the values that it may have.

    Made by ``Control.tick``, ``choice``, ``slider``, ``number`` and ``order``, or from a switch by ``switch_control``.
    Values are what JSON can hold.
    """

    name: str
    label: str
    kind: Kind
    start: Any
    options: tuple[tuple[str, Any], ...] = ()
    """Words and value of each, in order; of an order the calls that it is made of."""
    every: int = 0
    """Milliseconds between two values of a slider while it plays, 0 for one that does not."""
    low: float = 0.0
    high: float = 0.0
    step: float = 0.0
    """Of a slider over all numbers from ``low`` to ``high``: what a hand moves it by. 0 for one over its options."""

    @classmethod
    def tick(cls, name: str, label: str = "", start: bool = True) -> Control:
        """Return a box to tick."""
        return cls(name, label or name, "tick", start, (("off", False), ("on", True)))

    @classmethod
    def choice(cls, name: str, label: str, start: Any, options: Iterable[Any]) -> Control:
        """Return a list to choose from; ``options`` are values, or pairs of words and a value."""
        pairs = tuple(option if isinstance(option, tuple) else (str(option), option) for option in options)
        return cls(name, label, "choice", start, pairs)

    @classmethod
    def slider(
        cls,
        name: str,
        label: str,
        start: Any,
        values: Sequence[Any],
        text: Callable[[Any], str] = str,
        *,
        plays: bool | int = False,
    ) -> Control:
        """Return a slider over these values. ``plays`` adds a button that moves it along, that many ms a value."""
        every = 250 if plays is True else int(plays)
        return cls(name, label, "slider", start, tuple((text(value), value) for value in values), every)

    @classmethod
    def number(cls, name: str, label: str, start: float, low: float, high: float, step: float) -> Control:
        """Return a slider over all numbers from ``low`` to ``high``, which a hand moves by ``step``."""
        return cls(name, label, "slider", start, low=low, high=high, step=step)

    @classmethod
    def order(cls, name: str, label: str, start: str, pieces: Sequence[str]) -> Control:
        """Return calls to be put in an order, left out or doubled; the value names them in one text with spaces."""
        return cls(name, label, "order", start, tuple((piece, piece) for piece in pieces))

    @property
    def values(self) -> list[Any]:
        """The values it may have; of an order the calls, and none of a slider over all numbers."""
        return [value for _, value in self.options]

    def check(self, owner: str, value: Any) -> Any:
        """Return the value as it is kept; ValueError names the owner, the control, the value and what is allowed."""
        if self.kind == "order":
            pieces = value.split() if isinstance(value, str) else []
            if not 1 <= len(pieces) <= MOST_PIECES or not set(pieces) <= set(self.values):
                allowed = f"1 to {MOST_PIECES} of {', '.join(self.values)}, with spaces between them"
                raise ValueError(f"{owner}: {self.name} must be {allowed}, got {value!r}")
            return " ".join(pieces)
        if self.step:
            if not _is_number(value) or not self.low <= value <= self.high:
                raise ValueError(f"{owner}: {self.name} must be {self._allowed}, got {value!r}")
            return float(value)
        for known in self.values:
            if type(known) is type(value) and known == value:
                return known
        for known in self.values:  # 1 for 1.0, as JSON has them
            if _is_number(known) and _is_number(value) and known == value:
                return known
        raise ValueError(f"{owner}: {self.name} must be {self._allowed}, got {value!r}")

    def nearest(self, number: float) -> Any:
        """Return the value of a slider of numbers that lies nearest, for one that is dragged in a panel."""
        if self.step:
            steps = round((min(max(number, self.low), self.high) - self.low) / self.step)
            return min(round(self.low + steps * self.step, 10), self.high) + 0.0  # no minus before 0
        if not self.values:
            raise ValueError(f"{self.name} cannot be dragged")
        return min(self.values, key=lambda value: abs(value - number))

    def only(self, values: Sequence[Any]) -> Control:
        """Return the control with those of its values that a page without a kernel holds."""
        if self.kind == "order":
            return self
        if self.step:
            return replace(self, step=0.0, options=tuple((f"{value:g}", value) for value in sorted(set(values))))
        return replace(self, options=tuple(option for option in self.options if option[1] in values))

    def starting_at(self, owner: str, value: Any) -> Control:
        """Return the control with another start; a slider of numbers takes in one that lies between its values."""
        values = self.values
        numbers = self.kind == "slider" and all(map(_is_number, [value, *values]))
        if self.step or not numbers or value in values or not min(values) < value < max(values):
            return replace(self, start=self.check(owner, value))
        falls = values[0] > values[-1]
        options = sorted([*self.options, (f"{value:g}", value)], key=lambda option: option[1], reverse=falls)
        return replace(self, start=value, options=tuple(options))

    @property
    def data(self) -> dict[str, Any]:
        """What the browser is told of it."""
        told: dict[str, Any] = {"name": self.name, "label": self.label, "kind": self.kind}
        if self.step:
            told.update(low=self.low, high=self.high, step=self.step)
        elif self.kind in ("choice", "slider"):
            told["options"] = [list(option) for option in self.options]
        elif self.kind == "whole":
            told.update(low=self.low, high=self.high)
        elif self.kind == "order":
            told.update(options=self.values, high=MOST_PIECES)
        if self.every:
            told["every"] = self.every
        return told

    @property
    def _allowed(self) -> str:
        values = self.values
        if self.step:
            return f"a number from {self.low:g} to {self.high:g}"
        if self.kind == "slider" and len(values) > 8 and all(map(_is_number, values)):
            return f"one of {len(values)} values from {min(values):g} to {max(values):g}"
        return f"one of {', '.join(repr(value) for value in values)}"


def switch_control(name: str, switch: Switch, value: Any) -> Control:
    """Return the control of a switch, at a value of a recipe; one that is not among the offered ones is offered too."""
    label = switch.label or name
    if isinstance(switch, OnOff):
        return Control.tick(name, label, value)
    if isinstance(switch, Choice):
        return Control.choice(name, label, value, switch.options)
    if isinstance(switch, Whole):
        return Control(name, label, "whole", str(value), low=switch.low, high=switch.high)
    if not (isinstance(switch, Positive) and switch.offered):
        return Control(name, label, "number", switch.text(value))
    offered = sorted({*switch.offered, *([value] if value is not None else [])})
    start = "off" if value is None else value
    return Control.choice(name, label, start, [("off", "off"), *((switch.text(each), each) for each in offered)])


def lab_settings(run: Run, names: Sequence[str], card: str, speed: str, ticks: Mapping[str, bool]) -> dict[str, Any]:
    """Return what a frame tells of a Lab's loop and controls: those of these names, and ``ticks`` with their values."""
    recipe = run.recipe
    own = "this GPU" if run.task.device.startswith("cuda") else "none"  # the word for no card chosen
    controls = [
        Control.choice("task", "task", run.task.name, tasks.names()),
        *(switch_control(name, switch, getattr(recipe, name)) for name, switch in SWITCHES.items()),
        Control.choice("card", "card", card, [(own, ""), *SHOWN, *[card] * (card not in ("", *SHOWN))]),
        *(Control.tick(name, "show without the switch", on) for name, on in ticks.items()),
    ]
    return {
        "code": {"source": run.source, "html": coloured(run.source)},
        "controls": [control.data for control in controls if control.name in names or control.name in ticks],
        "values": {control.name: control.start for control in controls},
        "off": [name for name, switch in SWITCHES.items() if not switch.matters(recipe)],
        "speeds": [list(each) for each in SPEEDS.items()] if "speed" in names else [],
        "speed": SPEEDS[speed],
        "editable": "edit" in names,
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
