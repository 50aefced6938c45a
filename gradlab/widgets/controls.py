"""The controls of labs and instruments: switches with a name and a start value, and their data for the browser."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import tasks
from .._checks import number as checked_number
from ..loop import SWITCHES, Choice, OnOff, Positive, Run, Switch, Whole
from .frames import coloured

PRESSED_LINE = "line"
CONTROLS = ("task", *SWITCHES, PRESSED_LINE, "edit", "speed")
"""The names for ``controls=[...]`` of a Lab. With "line" or "zero_grad", a click on the line of ``zero_grad()`` turns
``zero_grad`` off or on; "edit" is the button below the code, and "speed" is the list next to Play."""
SPEEDS = {"statements": 0.0, "1 update/s": 1.0, "10 updates/s": 10.0, "60 updates/s": 60.0, "full speed": None}
"""Updates per second by label; 0 runs one statement at a time, None runs as fast as possible."""
MOST_IN_BEATS = 10.0
"""Maximum updates per second at which there is a frame after each call in ``BEATS``, not only after each update."""
USUAL_SPEED = "60 updates/s"  # the default speed of a Lab
_TASKS = tasks.names()
ZERO_GRAD = "zero_grad"
MOST_PIECES = 8  # maximum number of calls in the value of an Order


@dataclass(frozen=True, kw_only=True)
class Slider(Choice):
    """A choice on a slider that can play if ``every`` is not 0, and then stays at each option for ``every`` ms."""

    kind = "slider"
    every: int = 0


@dataclass(frozen=True, kw_only=True)
class Range(Switch):
    """A number from ``low`` to ``high``, on a slider that moves in steps of ``step``."""

    kind = "slider"
    low: float
    high: float
    step: float

    def check(self, name: str, value: object) -> float:
        """Return ``value`` as a float. Raises ValueError if it is not a number from ``low`` to ``high``."""
        return checked_number(name, value, self.low, self.high, kind=ValueError)


@dataclass(frozen=True, kw_only=True)
class Order(Switch):
    """A list of calls that can be reordered, left out or repeated, with the names separated by spaces as its value."""

    kind = "order"
    pieces: tuple[str, ...]

    def check(self, name: str, value: object) -> str:
        """Return the names in ``value`` with single spaces. Raises ValueError for no, too many or unknown names."""
        order = value.split() if isinstance(value, str) else []
        if not 1 <= len(order) <= MOST_PIECES or not set(order) <= set(self.pieces):
            allowed = f"1 to {MOST_PIECES} of {', '.join(self.pieces)}, with spaces between them"
            raise ValueError(f"{name} must be {allowed}, got {value!r}")
        return " ".join(order)


@dataclass(frozen=True)
class Control:
    """A switch with a name and a start value, whose values can all be written as JSON."""

    name: str
    switch: Switch
    start: Any

    @classmethod
    def tick(cls, name: str, label: str = "", start: bool = True) -> Control:
        """Return a control with a checkbox."""
        return cls(name, OnOff(label=label), start)

    @classmethod
    def choice(cls, name: str, label: str, start: Any, options: Iterable[Any]) -> Control:
        """Return a control that offers a list of options. ``options`` are values or (label, value) tuples."""
        labels, values = (), tuple(options)
        if isinstance(values[0], tuple):
            labels, values = zip(*values, strict=True)
        return cls(name, Choice(label=label, options=values, labels=labels), start)

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
        """Return a slider over ``values`` labelled by ``text``, which plays if ``plays`` is True or a number of ms."""
        every = 250 if plays is True else int(plays)
        labels = tuple(map(text, values))
        return cls(name, Slider(label=label, options=tuple(values), labels=labels, every=every), start)

    @classmethod
    def number(cls, name: str, label: str, start: float, low: float, high: float, step: float) -> Control:
        """Return a control with a slider from ``low`` to ``high`` that moves in steps of ``step``."""
        return cls(name, Range(label=label, low=low, high=high, step=step), start)

    @classmethod
    def order(cls, name: str, label: str, start: str, pieces: Sequence[str]) -> Control:
        """Return a control for an order of calls whose allowed names are ``pieces``, initially the order ``start``."""
        return cls(name, Order(label=label, pieces=tuple(pieces)), start)

    @property
    def values(self) -> Sequence[Any]:
        """The allowed values if they can be listed, otherwise only the start value."""
        if isinstance(self.switch, OnOff):
            return [False, True]
        return self.switch.options if isinstance(self.switch, Choice) else [self.start]

    def check(self, owner: str, value: Any) -> Any:
        """Return ``value`` in normal form. Raises ValueError, which names ``owner``, if the value is invalid."""
        return self.switch.check(f"{owner}: {self.name}", value)

    def restricted_to(self, values: Collection[Any]) -> Control:
        """Return this control for a page without a kernel: a range or a choice is limited to ``values``."""
        switch = self.switch
        if isinstance(switch, Range):
            return Control.slider(self.name, switch.label, self.start, sorted(set(values)), "{:g}".format)
        if not isinstance(switch, Choice):
            return self
        left = [value for value in switch.options if value in values]
        return replace(self, switch=replace(switch, options=tuple(left), labels=tuple(map(switch.text, left))))

    @property
    def data(self) -> dict[str, Any]:
        """The control as a dict for the browser, an entry of ``controls`` in a frame."""
        switch = self.switch
        data: dict[str, Any] = {"name": self.name, "label": switch.label or self.name, "kind": switch.kind}
        if isinstance(switch, (Range, Whole)):
            data.update(low=switch.low, high=switch.high)
        if isinstance(switch, Range):
            data["step"] = switch.step
        if isinstance(switch, Choice):
            data["options"] = [[switch.text(value), value] for value in switch.options]
        if isinstance(switch, Order):
            data.update(options=switch.pieces, high=MOST_PIECES)
        if isinstance(switch, Slider) and switch.every:
            data["every"] = switch.every
        return data


def switch_control(name: str, switch: Switch, value: Any) -> Control:
    """Return the Control that sets ``switch`` under the name ``name`` and starts at ``value``."""
    if isinstance(switch, Positive) and switch.offered:  # a choice of "off", the offered numbers and ``value``
        offered = sorted({*switch.offered, *([] if value is None else [value])})
        start = "off" if value is None else value
        return Control.choice(name, switch.label, start, [("off", "off"), *((switch.text(n), n) for n in offered)])
    return Control(name, switch, switch.text(value) if isinstance(switch, (Positive, Whole)) else value)


def lab_settings(run: Run, names: Sequence[str], speed: str) -> dict[str, Any]:
    """Return the fields of a frame that describe a Lab's loop and controls."""
    controls = [Control.choice("task", "task", run.task.name, _TASKS)]
    controls += [switch_control(name, switch, getattr(run.recipe, name)) for name, switch in SWITCHES.items()]
    off = [name for name, switch in SWITCHES.items() if switch.matters and not switch.matters(run.recipe)]
    text, turns = run.source, {ZERO_GRAD, PRESSED_LINE} & set(names) and not run.loop.is_edited
    turning = [n for n, line in enumerate(text.splitlines(), 1) if turns and f"optimizer.{ZERO_GRAD}(" in line]
    return {
        "code": {"source": text, "html": coloured(text), "turns": turning, "hint": PRESSED_LINE in names},
        "controls": [control.data for control in controls if control.name in names],
        "values": {control.name: control.start for control in controls},
        "off": off,
        "speeds": list(map(list, SPEEDS.items())) if "speed" in names else [],
        "speed": SPEEDS[speed],
        "editable": "edit" in names,
    }
