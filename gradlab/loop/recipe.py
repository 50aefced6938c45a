"""Recipe: the switches of a training loop, and the text of the loop.

The text is the loop that a PyTorch teacher would write on the board, and it is also the program: a Lab shows it, and a
Run executes it line by line. Executed with ``exec`` in a namespace of only ``torch``, ``model``, ``loss_fn``,
``batches``, ``device`` and ``epochs``, it trains in the same way. The class of a switch defines allowed values and
labels, for Recipe's checks, for controls in a Lab, a ForecastLab or an instrument, and for command-line options.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

from .._checks import LARGEST_FLOAT, SMALLEST_FLOAT, did_you_mean, number, on_off, one_of, whole_number


@dataclass(frozen=True, kw_only=True)
class Switch(ABC):
    """The declaration of a switch, which is a field of Recipe: allowed values, label and command-line option."""

    kind: ClassVar[str]  # kind of the control, for which ``front/controls.js`` has an element
    label: str = ""  # name shown to learners, such as "AMP" for ``amp``, or "" to show the field's name
    option: str = ""  # command-line option, such as "--amp", or "" if there is none
    metavar: str | None = None  # placeholder for the option's value in the help text
    help: str | None = None  # help text of the command-line option
    matters: Callable[[Any], bool] | None = None
    """A function that returns whether the switch has an effect in a recipe, or None if the switch always has one."""

    @abstractmethod
    def check(self, name: str, value: object) -> Any:
        """Return ``value`` as a Recipe stores it. Raises ValueError, with ``name``, if the value is not allowed."""

    def text(self, value: Any) -> str:
        """Return ``value`` as it is shown to learners."""
        return str(value)

    def read(self, name: str, typed: object) -> Any:
        """Return the value for ``typed``, a choice or text from a control. Raises ValueError if it is not allowed."""
        return self.check(name, typed)


@dataclass(frozen=True, kw_only=True)
class OnOff(Switch):
    """A switch whose value is True or False."""

    kind = "tick"

    def check(self, name: str, value: object) -> bool:
        """Return ``value``; raises ValueError if it is not a bool."""
        return on_off(name, value, kind=ValueError)

    def text(self, value: Any) -> str:
        """Return "on" or "off"."""
        return "on" if value else "off"


@dataclass(frozen=True, kw_only=True)
class Choice(Switch):
    """A switch whose value is one of several strings or numbers."""

    kind = "choice"
    options: tuple[Any, ...]
    labels: tuple[str, ...] = ()  # labels in the order of ``options``, or () if each option is its own label

    def check(self, name: str, value: object) -> Any:
        """Return the option that equals ``value``, such as 1 for 1.0 (but not for True), or raise ValueError."""
        if isinstance(value, (str, int, float)) and not isinstance(value, bool) and value in self.options:
            return self.options[self.options.index(value)]
        near = did_you_mean(value, [option for option in self.options if isinstance(option, str)])
        raise ValueError(f"{name} must be one of {', '.join(map(repr, self.options))}, got {value!r}{near}")

    def text(self, value: Any) -> str:
        """Return the label of the option ``value``, or ``str(value)`` if there are no ``labels``."""
        return self.labels[self.options.index(value)] if self.labels else str(value)


@dataclass(frozen=True, kw_only=True)
class Whole(Switch):
    """A switch whose value is a whole number from ``low`` to ``high``."""

    kind = "whole"
    low: int
    high: int

    def check(self, name: str, value: object) -> int:
        """Return ``value`` as an int; raises ValueError if it is not a whole number from ``low`` to ``high``."""
        allowed = f"{self.low} to {self.high}"
        if isinstance(value, bool) or not isinstance(value, Integral):  # a whole number can only be out of range
            allowed = f"a whole number, {allowed}"
        return whole_number(name, value, self.low, self.high, allowed=allowed, kind=ValueError)

    def read(self, name: str, typed: object) -> int:
        """Return ``typed``, a whole number or a text such as "4", as an int; "2.5", for example, raises ValueError."""
        if isinstance(typed, str) and re.fullmatch(r"[+-]?\d{1,18}", typed.strip(), re.ASCII):
            count = int(typed)
            return self.check(name, count if self.low <= count <= self.high else typed)  # errors quote the typed text
        return self.check(name, typed)


@dataclass(frozen=True, kw_only=True)
class Positive(Switch):
    """A switch whose value is a finite number above 0 or, if ``offered`` is not empty, None, which means "off"."""

    kind = "number"
    offered: tuple[float, ...] = ()

    def check(self, name: str, value: object) -> float | None:
        """Return ``value`` as a float, or None if it is None and None is allowed; otherwise, raise ValueError."""
        if value is None and self.offered:
            return None
        allowed = f"{'None or ' if self.offered else ''}a finite number above 0"
        return number(name, value, SMALLEST_FLOAT, LARGEST_FLOAT, allowed=allowed, kind=ValueError)

    def read(self, name: str, typed: object) -> float | None:
        """Return a float for text such as "0.05" or "1e-3", or None for "off"; raises ValueError for invalid text."""
        if isinstance(typed, str):
            if typed.strip() == "off":
                return self.check(name, None)
            if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", typed.strip(), re.ASCII):
                amount = float(typed)
                return self.check(name, amount if 0 < amount < math.inf else typed)  # errors quote the typed text
        return self.check(name, typed)

    def text(self, value: Any) -> str:
        """Return the number with at most six significant digits, or "off" for None."""
        return "off" if value is None else f"{value:g}"


def declare(default: Any, switch: Switch) -> Any:
    """Return a dataclass field with ``default`` as its default value and ``switch`` in its metadata."""
    return field(default=default, metadata={"switch": switch})


LONGEST_WINDOW = 16
_OPTIMIZER = {
    "sgd": "torch.optim.SGD(model.parameters(), lr={lr})",
    "momentum": "torch.optim.SGD(model.parameters(), lr={lr}, momentum=0.9)",
    "adam": "torch.optim.Adam(model.parameters(), lr={lr})",
    "adamw": "torch.optim.AdamW(model.parameters(), lr={lr})",
}
_AUTOCAST = {"bf16": "torch.bfloat16", "fp16": "torch.float16"}
_INDENT = "    "


@dataclass(frozen=True)
class Recipe:
    """The switches of a training loop.

    Args:
        zero_grad: Clear ``.grad`` before each update.
        set_to_none: Clear ``.grad`` by setting it to None; if False, fill ``.grad`` with zeros.
        accumulate: Number of micro-batches in each update, 1 to 16.
        divide_loss: Divide the loss of each micro-batch by the number of micro-batches in the update.
        amp: Mixed precision: "off", "bf16" or "fp16".
        clip: Maximum norm of all gradients together, to which larger gradients are clipped; None for no clipping.
        optimizer: "sgd", "momentum" (SGD with a momentum of 0.9), "adam" or "adamw".
        lr: The learning rate.

    Raises:
        ValueError: If a value is not allowed, or if an argument is not the name of a switch.
    """

    # Each field declares one switch: the check of values, the control in a Lab, the command-line option and the label.
    zero_grad: bool = declare(True, OnOff(option="--zero-grad", help="clear .grad in each update"))
    set_to_none: bool = declare(
        True,
        OnOff(option="--set-to-none", help="set .grad to None, not zeros", matters=lambda recipe: recipe.zero_grad),
    )
    accumulate: int = declare(
        1,
        Whole(low=1, high=LONGEST_WINDOW, option="--window", metavar="N", help=f"micro-batches, 1 to {LONGEST_WINDOW}"),
    )
    divide_loss: bool = declare(True, OnOff(matters=lambda recipe: recipe.accumulate > 1))
    amp: str = declare(
        "off", Choice(options=("off", "bf16", "fp16"), label="AMP", option="--amp", help="autocast to this dtype")
    )
    clip: float | None = declare(
        None,
        Positive(offered=(0.1, 0.5, 1.0, 5.0), option="--clip", metavar="NORM", help="clip gradients to this norm"),
    )
    optimizer: str = declare(
        "sgd",
        Choice(options=("sgd", "momentum", "adam", "adamw"), option="--optimizer", help="momentum: SGD, momentum=0.9"),
    )
    lr: float = declare(0.1, Positive())

    def __new__(cls, *_: Any, **values: Any) -> Recipe:
        """Raise ValueError instead of TypeError for an argument that is not the name of a switch."""
        for name in values:
            one_of("Recipe: a switch", name, SWITCHES)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for name, switch in SWITCHES.items():
            object.__setattr__(self, name, switch.check(f"Recipe: {name}", getattr(self, name)))

    def source(self, batch: Any = None) -> str:
        """Return the Python text that a Run executes: the set-up, followed by the loop over epochs.

        ``batch`` is an example of the batches. If it is None, or a tuple or list of length 2, batches are pairs (x, y).
        Any other batch is passed to the loss as a whole, ``loss_fn(output, batch)``, and to the model: a dict as
        ``model(**batch)``, a tuple or list as ``model(*batch)``, and anything else as ``model(batch)``.
        """
        setup = [f"optimizer = {_OPTIMIZER[self.optimizer].format(lr=self.lr)}"]
        if self.amp == "fp16":
            setup.append("scaler = torch.amp.GradScaler(device)")
        epoch = (_window if self.accumulate > 1 else _batch)(self, _reading(batch))
        return "\n".join([*setup, "", "for epoch in range(epochs):", *_indented(epoch)]) + "\n"

    def replace(self, **changes: Any) -> Recipe:
        """Return a copy with the values in ``changes``. Raises ValueError for an unknown switch or an invalid value."""
        return replace(self, **changes)

    def changes_from(self, other: Recipe) -> list[str]:
        """Return the settings that ``other`` does not share, as texts such as ``["zero_grad off", "lr 0.05"]``."""
        return [
            f"{switch.label or name} {switch.text(getattr(self, name))}"
            for name, switch in SWITCHES.items()
            if getattr(self, name) != getattr(other, name)
        ]


SWITCHES: dict[str, Switch] = {each.name: each.metadata["switch"] for each in fields(Recipe)}
"""The declarations of all switches, by name."""


class _Reading(NamedTuple):
    """Parts of a loop's text: names for a batch, the line that moves it, and arguments for the model and the loss."""

    names: str
    move: str
    argument: str
    target: str


def _reading(batch: Any) -> _Reading:
    if batch is None or (isinstance(batch, (tuple, list)) and len(batch) == 2):
        argument = _stars(batch and batch[0]) + "x"  # in a forecast, x may be a dict, list or tuple
        return _Reading("x, y", "x, y = x.to(device), y.to(device)", argument, "y")
    moved = {
        "**": "{name: value.to(device) for name, value in batch.items()}",
        "*": "tuple(value.to(device) for value in batch)",
        "": "batch.to(device)",
    }
    stars = _stars(batch)
    return _Reading("batch", f"batch = {moved[stars]}", f"{stars}batch", "batch")


def _stars(value: Any) -> str:
    return "**" if isinstance(value, dict) else "*" if isinstance(value, (tuple, list)) else ""


def _batch(recipe: Recipe, reading: _Reading) -> list[str]:
    body = [reading.move, _clear(recipe), *_forward_backward(recipe, reading, "loss"), *_update(recipe)]
    return [f"for {reading.names} in batches:", *_indented(body)]


def _window(recipe: Recipe, reading: _Reading) -> list[str]:
    loss = "loss / len(window)" if recipe.divide_loss else "loss"
    body = [reading.move, *_forward_backward(recipe, reading, loss)]
    each = [f"for {reading.names} in window:", *_indented(body)]
    n = recipe.accumulate
    body = [f"window = batches[start:start + {n}]", _clear(recipe), *each, *_update(recipe)]
    return [f"for start in range(0, len(batches), {n}):", *_indented(body)]


def _clear(recipe: Recipe) -> str:
    line = f"optimizer.zero_grad({'' if recipe.set_to_none else 'set_to_none=False'})"
    return line if recipe.zero_grad else f"# {line}"


def _forward_backward(recipe: Recipe, reading: _Reading, loss: str) -> list[str]:
    forward = [f"output = model({reading.argument})", f"loss = loss_fn(output, {reading.target})"]
    if recipe.amp != "off":
        autocast = f"with torch.autocast(device_type=device, dtype={_AUTOCAST[recipe.amp]}):"
        forward = [autocast, *_indented(forward)]
    # ``loss`` itself is never divided or scaled, so that the logged value is the loss and not a share of it.
    if recipe.amp == "fp16":
        return [*forward, f"scaler.scale({loss}).backward()"]
    return [*forward, f"{loss}.backward()" if loss == "loss" else f"({loss}).backward()"]


def _update(recipe: Recipe) -> list[str]:
    scaled = recipe.amp == "fp16"
    lines = []
    if recipe.clip is not None:
        if scaled:  # clipping must see the gradients without the loss scale, which is 65536 at first
            lines.append("scaler.unscale_(optimizer)")
        lines.append(f"torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm={recipe.clip})")
    return [*lines, *(["scaler.step(optimizer)", "scaler.update()"] if scaled else ["optimizer.step()"])]


def _indented(lines: list[str]) -> list[str]:
    return [_INDENT + line for line in lines]
