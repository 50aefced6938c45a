"""Recipe: every switch of the training loop, and the text of the loop.

The text is the loop that a PyTorch teacher would write on the board, and also the program: a Run executes it line by
line, the code pane shows it, and ``exec`` of it in a namespace that holds only ``torch``, ``model``, ``loss_fn``,
``batches``, ``device`` and ``epochs`` trains just the same. The class of a switch defines its values and their text:
Recipe's check, the control in a Lab, a ForecastLab or an instrument, and the option on the command line use it.
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
    """The declaration of a switch without its name and value; in a Recipe these are a field's."""

    kind: ClassVar[str]  # ``front/controls.js`` has an element for each
    label: str = ""  # its name for learners, if not the field's: "AMP" for ``amp``
    option: str = ""  # its option on the command line, "" for none
    metavar: str | None = None  # the option's value in the command line's help ...
    help: str | None = None  # ... and the text on the option
    matters: Callable[[Any], bool] | None = None
    """Whether it has an effect in a recipe, None for always; without effect its control is greyed out."""

    @abstractmethod
    def check(self, name: str, value: object) -> Any:
        """Return the value in its stored form; ValueError names the name, the value and what is allowed."""

    def text(self, value: Any) -> str:
        """Write a value."""
        return str(value)

    def read(self, name: str, typed: object) -> Any:
        """Return the value that was chosen or typed in a control; ValueError names what is allowed."""
        return self.check(name, typed)


@dataclass(frozen=True, kw_only=True)
class OnOff(Switch):
    """True or False."""

    kind = "tick"

    def check(self, name: str, value: object) -> bool:
        """Return a bool."""
        return on_off(name, value, kind=ValueError)

    def text(self, value: Any) -> str:
        """Write "on" or "off"."""
        return "on" if value else "off"


@dataclass(frozen=True, kw_only=True)
class Choice(Switch):
    """One of some texts or numbers."""

    kind = "choice"
    options: tuple[Any, ...]
    labels: tuple[str, ...] = ()
    """Texts of the options, if not the options themselves."""

    def check(self, name: str, value: object) -> Any:
        """Return one of the options; 1 is 1.0, as in JSON, but not True."""
        if isinstance(value, (str, int, float)) and not isinstance(value, bool) and value in self.options:
            return self.options[self.options.index(value)]
        near = did_you_mean(value, [option for option in self.options if isinstance(option, str)])
        raise ValueError(f"{name} must be one of {', '.join(map(repr, self.options))}, got {value!r}{near}")

    def text(self, value: Any) -> str:
        """Write an option."""
        return self.labels[self.options.index(value)] if self.labels else str(value)


@dataclass(frozen=True, kw_only=True)
class Whole(Switch):
    """A whole number from ``low`` to ``high``."""

    kind = "whole"
    low: int
    high: int

    def check(self, name: str, value: object) -> int:
        """Return an int within the range."""
        allowed = f"{self.low} to {self.high}"
        if isinstance(value, bool) or not isinstance(value, Integral):  # else only the size is wrong
            allowed = f"a whole number, {allowed}"
        return whole_number(name, value, self.low, self.high, allowed=allowed, kind=ValueError)

    def read(self, name: str, typed: object) -> int:
        """Take a typed whole number: ``"4"``, but not ``"2.5"``."""
        if isinstance(typed, str) and re.fullmatch(r"[+-]?\d{1,18}", typed.strip(), re.ASCII):
            count = int(typed)
            return self.check(name, count if self.low <= count <= self.high else typed)  # rejected as it was typed
        return self.check(name, typed)


@dataclass(frozen=True, kw_only=True)
class Positive(Switch):
    """A finite number above 0; with ``offered``, the numbers in its control, also None, "off"."""

    kind = "number"
    offered: tuple[float, ...] = ()

    def check(self, name: str, value: object) -> float | None:
        """Return a float, so that equal recipes read alike."""
        if value is None and self.offered:
            return None
        allowed = f"{'None or ' if self.offered else ''}a finite number above 0"
        return number(name, value, SMALLEST_FLOAT, LARGEST_FLOAT, allowed=allowed, kind=ValueError)

    def read(self, name: str, typed: object) -> float | None:
        """Take a typed number: ``"0.05"``, ``"1e-3"``; where it may be None, "off" too."""
        if isinstance(typed, str):
            if typed.strip() == "off":
                return self.check(name, None)
            if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", typed.strip(), re.ASCII):
                amount = float(typed)
                return self.check(name, amount if 0 < amount < math.inf else typed)  # rejected as it was typed
        return self.check(name, typed)

    def text(self, value: Any) -> str:
        """Write the number in at most six figures, None as "off"."""
        return "off" if value is None else f"{value:g}"


def declare(default: Any, switch: Switch) -> Any:
    """Return a dataclass field with this default and the switch in its metadata."""
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
        set_to_none: Whether clearing drops the tensor or fills it with zeros.
        accumulate: Micro-batches in a window, 1 to 16.
        divide_loss: Divide each loss by the size of its window.
        amp: "off", "bf16" or "fp16".
        clip: The largest gradient norm that a step may use, or None.
        optimizer: "sgd", "momentum" (SGD, momentum 0.9), "adam" or "adamw".
        lr: The learning rate.

    Raises:
        TypeError, ValueError: The field, the value and what is allowed.
    """

    # One line a switch: its check, its control in a Lab, its option on the command line and its words follow from it.
    zero_grad: bool = declare(True, OnOff(option="--zero-grad", help="clear .grad in each update"))
    set_to_none: bool = declare(
        True,
        OnOff(option="--set-to-none", help="clear to None, not to zeros", matters=lambda recipe: recipe.zero_grad),
    )
    accumulate: int = declare(
        1,
        Whole(low=1, high=LONGEST_WINDOW, option="--window", metavar="N", help=f"micro-batches, 1 to {LONGEST_WINDOW}"),
    )
    divide_loss: bool = declare(True, OnOff(matters=lambda recipe: recipe.accumulate > 1))
    amp: str = declare(
        "off",
        Choice(options=("off", "bf16", "fp16"), label="AMP", option="--amp", help="autocast to this type"),
    )
    clip: float | None = declare(
        None,
        Positive(offered=(0.1, 0.5, 1.0, 5.0), option="--clip", metavar="NORM", help="clip gradients to this norm"),
    )
    optimizer: str = declare(
        "sgd",
        Choice(options=("sgd", "momentum", "adam", "adamw"), option="--optimizer", help="momentum: SGD with 0.9"),
    )
    lr: float = declare(0.1, Positive())

    def __new__(cls, *_: Any, **values: Any) -> Recipe:
        """Reject a name that is no switch with a ValueError, like any other bad value."""
        for name in values:
            one_of("Recipe: a switch", name, SWITCHES)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Check every field; store whole-number ``clip`` and ``lr`` as floats so that equal recipes read alike."""
        for name, switch in SWITCHES.items():
            object.__setattr__(self, name, switch.check(f"Recipe: {name}", getattr(self, name)))

    def source(self, batch: Any = None) -> str:
        """Return the loop as Python text: the set-up, then the epochs; a Run executes this text.

        ``batch`` is one of those that the loop reads; None stands for a pair (x, y), as two in a tuple or list do. Any
        other goes to the loss as a whole, ``loss_fn(output, batch)``, and to the model as ``model(**batch)`` if it is
        a dict, ``model(*batch)`` if it is a tuple or list, and else ``model(batch)``.
        """
        setup = [f"optimizer = {_OPTIMIZER[self.optimizer].format(lr=self.lr)}"]
        if self.amp == "fp16":
            setup.append("scaler = torch.amp.GradScaler(device)")
        epoch = (_window if self.accumulate > 1 else _batch)(self, _reading(batch))
        return "\n".join([*setup, "", "for epoch in range(epochs):", *_indented(epoch)]) + "\n"

    def replace(self, **changes: Any) -> Recipe:
        """Return a copy with some switches changed; a name that is no switch is a ValueError."""
        return replace(self, **changes)

    def changes_from(self, other: Recipe) -> list[str]:
        """Return the differences from ``other``: ``["zero_grad off", "lr 0.05"]``."""
        return [
            f"{switch.label or name} {switch.text(getattr(self, name))}"
            for name, switch in SWITCHES.items()
            if getattr(self, name) != getattr(other, name)
        ]


SWITCHES: dict[str, Switch] = {each.name: each.metadata["switch"] for each in fields(Recipe)}
"""The declaration of each switch, by the name of its field."""


class _Reading(NamedTuple):
    """The names of a batch in the text, the line that moves it, and the arguments of the model and the loss."""

    names: str
    move: str
    argument: str
    target: str


def _reading(batch: Any) -> _Reading:
    if batch is None or (isinstance(batch, (tuple, list)) and len(batch) == 2):
        argument = _stars(batch and batch[0]) + "x"  # only a forecast has an x that is no tensor
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
    """Return a loop with one update for each window of batches; a shorter last one is divided by its own size."""
    loss = "loss / len(window)" if recipe.divide_loss else "loss"
    body = [reading.move, *_forward_backward(recipe, reading, loss)]
    each = [f"for {reading.names} in window:", *_indented(body)]
    n = recipe.accumulate
    body = [f"window = batches[start:start + {n}]", _clear(recipe), *each, *_update(recipe)]
    return [f"for start in range(0, len(batches), {n}):", *_indented(body)]


def _clear(recipe: Recipe) -> str:
    """Return the line that clears ``.grad``, as a comment if it is switched off."""
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
        if scaled:  # the norm of scaled gradients is 65536 times too large: clip what the step will use
            lines.append("scaler.unscale_(optimizer)")
        lines.append(f"torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm={recipe.clip})")
    return [*lines, *(["scaler.step(optimizer)", "scaler.update()"] if scaled else ["optimizer.step()"])]


def _indented(lines: list[str]) -> list[str]:
    return [_INDENT + line for line in lines]
