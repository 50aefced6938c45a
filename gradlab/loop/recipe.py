"""Recipe: every switch of the training loop, checked once and then frozen."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

AMP = ("off", "bf16", "fp16")
OPTIMIZERS = ("sgd", "momentum", "adam", "adamw")
LONGEST_WINDOW = 16


@dataclass(frozen=True)
class Recipe:
    """Which training loop to run: one value for each switch.

    ``zero_grad`` clears ``.grad`` before each update, ``set_to_none`` says whether clearing drops the tensor or fills
    it with zeros. ``accumulate`` is the number of micro-batches in a window (1 to 16), ``divide_loss`` divides each
    loss by the size of its window. ``amp`` is ``"off"``, ``"bf16"`` or ``"fp16"``; ``clip`` is the largest gradient
    norm that a step may use, or ``None``. ``optimizer`` is ``"sgd"``, ``"momentum"`` (SGD, momentum 0.9), ``"adam"``
    or ``"adamw"``, and ``lr`` its learning rate.

    Raises TypeError or ValueError, naming the field, the value and what is allowed.
    """

    zero_grad: bool = True
    set_to_none: bool = True
    accumulate: int = 1
    divide_loss: bool = True
    amp: str = "off"
    clip: float | None = None
    optimizer: str = "sgd"
    lr: float = 0.1

    def __post_init__(self) -> None:
        """Check every field; store whole-number ``clip`` and ``lr`` as floats so that equal recipes read alike."""
        for name in ("zero_grad", "set_to_none", "divide_loss"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"Recipe: {name} must be True or False, got {getattr(self, name)!r}")
        if not isinstance(self.accumulate, int) or isinstance(self.accumulate, bool):
            raise ValueError(
                f"Recipe: accumulate must be a whole number, 1 to {LONGEST_WINDOW}, got {self.accumulate!r}"
            )
        if not 1 <= self.accumulate <= LONGEST_WINDOW:
            raise ValueError(f"Recipe: accumulate must be 1 to {LONGEST_WINDOW}, got {self.accumulate!r}")
        _one_of("amp", self.amp, AMP)
        _one_of("optimizer", self.optimizer, OPTIMIZERS)
        if self.clip is not None:
            object.__setattr__(self, "clip", _positive("clip", self.clip, "None or a finite number above 0"))
        object.__setattr__(self, "lr", _positive("lr", self.lr, "a finite number above 0"))

    def source(self) -> str:
        """Return the loop as Python text: the set-up, then the epochs; it is this text that a Run executes."""
        from .source import render

        return render(self)

    def replace(self, **changes: Any) -> Recipe:
        """Return a copy with some switches changed; a name that is no switch is a ValueError."""
        for name in changes:
            _one_of("a switch", name, tuple(field.name for field in fields(self)))
        return replace(self, **changes)

    def changes_from(self, other: Recipe) -> list[str]:
        """Say in a few words each what differs from ``other``: ``["zero_grad off", "lr 0.05"]``."""
        return [
            _words(field.name, getattr(self, field.name))
            for field in fields(self)
            if getattr(self, field.name) != getattr(other, field.name)
        ]


def _words(name: str, value: object) -> str:
    if isinstance(value, bool):
        return f"{name} {'on' if value else 'off'}"
    if name == "clip":
        return "clip off" if value is None else f"clip {value:g}"
    if name == "amp":
        return f"AMP {value}"
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"Recipe: {name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def _positive(name: str, value: object, allowed: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)
    except OverflowError:  # an int that no float can hold
        number = math.inf
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"Recipe: {name} must be {allowed}, got {value!r}")
    return number
