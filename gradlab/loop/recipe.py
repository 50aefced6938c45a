"""Recipe: every switch of the training loop, declared and checked here, and then frozen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .._checks import one_of
from .switches import Choice, OnOff, Positive, Whole, declare, switches_of

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

    # One line a switch: its check, its control in a Lab, its option on the command line and its words follow from it.
    zero_grad: bool = declare(True, OnOff(option="--zero-grad"))
    set_to_none: bool = declare(True, OnOff(option="--set-to-none", matters=lambda recipe: recipe.zero_grad))
    accumulate: int = declare(
        1,
        Whole(low=1, high=LONGEST_WINDOW, option="--window", metavar="N", help=f"micro-batches, 1 to {LONGEST_WINDOW}"),
    )
    divide_loss: bool = declare(True, OnOff(matters=lambda recipe: recipe.accumulate > 1))
    amp: str = declare("off", Choice(options=("off", "bf16", "fp16"), label="AMP", option="--amp", width=120))
    clip: float | None = declare(
        None,
        Positive(
            offered=(0.1, 0.5, 1.0, 5.0), width=115, option="--clip", metavar="NORM", help="clip gradients to this norm"
        ),
    )
    optimizer: str = declare(
        "sgd", Choice(options=("sgd", "momentum", "adam", "adamw"), option="--optimizer", width=180)
    )
    lr: float = declare(0.1, Positive(width=110))

    def __post_init__(self) -> None:
        """Check every field; store whole-number ``clip`` and ``lr`` as floats so that equal recipes read alike."""
        for name, switch in SWITCHES.items():
            object.__setattr__(self, name, switch.check(name, getattr(self, name)))

    def source(self) -> str:
        """Return the loop as Python text: the set-up, then the epochs; it is this text that a Run executes."""
        from .source import render

        return render(self)

    def replace(self, **changes: Any) -> Recipe:
        """Return a copy with some switches changed; a name that is no switch is a ValueError."""
        for name in changes:
            one_of("Recipe: a switch", name, SWITCHES)
        return replace(self, **changes)

    def changes_from(self, other: Recipe) -> list[str]:
        """Say in a few words each what differs from ``other``: ``["zero_grad off", "lr 0.05"]``."""
        return [
            f"{switch.label or name} {switch.text(getattr(self, name))}"
            for name, switch in SWITCHES.items()
            if getattr(self, name) != getattr(other, name)
        ]


SWITCHES = switches_of(Recipe)
"""What is declared of each switch, by the name of its field."""
