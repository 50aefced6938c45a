"""Recipe: every switch of the training loop, and the text of the loop that it makes.

It is the loop that a PyTorch teacher would write on the board, and it is the program: a Run executes it line by line,
the code pane shows it, and ``exec`` of it in a namespace that holds only ``torch``, ``model``, ``loss_fn``,
``batches``, ``device`` and ``epochs`` trains just the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .._checks import one_of
from .switches import Choice, OnOff, Positive, Whole, declare, switches_of

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
    """Which training loop to run: one value for each switch.

    ``zero_grad`` clears ``.grad`` before each update, ``set_to_none`` says whether clearing drops the tensor or fills
    it with zeros. ``accumulate`` is the number of micro-batches in a window (1 to 16), ``divide_loss`` divides each
    loss by the size of its window. ``amp`` is ``"off"``, ``"bf16"`` or ``"fp16"``; ``clip`` is the largest gradient
    norm that a step may use, or ``None``. ``optimizer`` is ``"sgd"``, ``"momentum"`` (SGD, momentum 0.9), ``"adam"``
    or ``"adamw"``, and ``lr`` its learning rate.

    Raises TypeError or ValueError, naming the field, the value and what is allowed.
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

    def __post_init__(self) -> None:
        """Check every field; store whole-number ``clip`` and ``lr`` as floats so that equal recipes read alike."""
        for name, switch in SWITCHES.items():
            object.__setattr__(self, name, switch.check(f"Recipe: {name}", getattr(self, name)))

    def source(self) -> str:
        """Return the loop as Python text: the set-up, then the epochs; it is this text that a Run executes."""
        setup = [f"optimizer = {_OPTIMIZER[self.optimizer].format(lr=self.lr)}"]
        if self.amp == "fp16":
            setup.append("scaler = torch.amp.GradScaler(device)")
        epoch = _window(self) if self.accumulate > 1 else _batch(self)
        return "\n".join([*setup, "", "for epoch in range(epochs):", *_indented(epoch)]) + "\n"

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


def _batch(recipe: Recipe) -> list[str]:
    """One update for each batch."""
    body = [_MOVE, _clear(recipe), *_forward_backward(recipe, "loss"), *_update(recipe)]
    return ["for x, y in batches:", *_indented(body)]


def _window(recipe: Recipe) -> list[str]:
    """One update for each window of batches; the last one may be shorter and is divided by its own size."""
    loss = "loss / len(window)" if recipe.divide_loss else "loss"
    each = ["for x, y in window:", *_indented([_MOVE, *_forward_backward(recipe, loss)])]
    n = recipe.accumulate
    body = [f"window = batches[start:start + {n}]", _clear(recipe), *each, *_update(recipe)]
    return [f"for start in range(0, len(batches), {n}):", *_indented(body)]


_MOVE = "x, y = x.to(device), y.to(device)"


def _clear(recipe: Recipe) -> str:
    """The line that clears ``.grad``; it stays in sight as a comment when it is switched off."""
    line = f"optimizer.zero_grad(set_to_none={recipe.set_to_none})"
    return line if recipe.zero_grad else f"# {line}"


def _forward_backward(recipe: Recipe, loss: str) -> list[str]:
    forward = ["output = model(x)", "loss = loss_fn(output, y)"]
    if recipe.amp != "off":
        autocast = f"with torch.autocast(device_type=device, dtype={_AUTOCAST[recipe.amp]}):"
        forward = [autocast, *_indented(forward)]
    # ``loss`` itself is never divided or scaled, so that what is logged is the loss and not a share of it.
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
