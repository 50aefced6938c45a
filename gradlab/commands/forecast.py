"""``gradlab forecast``: the memory a training needs. Exit codes: 0 it fits (or no card was named), 1 it does not."""

from __future__ import annotations

import argparse
import re
from typing import Any

from .._torch import require_torch
from ..forecasting import GPUS, RESERVE_MARGIN, card_name, model_sizes, usable_bytes
from ..loop import LONGEST_WINDOW, SWITCHES, Choice, OnOff, Positive, Recipe, Whole
from . import Parsers

FITS, TOO_SMALL = 0, 1
# What forecast() takes, written down here because the modules that check it import torch.
CHOICES = {
    "--dtype": ("fp32", "bf16", "fp16"),
    "--optimizer-as": ("foreach", "for-loop", "fused", "adamw-8bit", "adafactor"),
    "--zero-grad-at": ("before-forward", "before-backward", "after-step"),
    "--shard": ("ddp", "ddp-view", "zero1", "zero2", "zero3", "fsdp"),
}
_OPTIONS = {
    **{
        name: f"--{name.replace('_', '-')}" for name in ("batch", "context", "zero_grad_at", "shard", "cards", "margin")
    },
    **{name: switch.option for name, switch in SWITCHES.items() if switch.option},
    "card": "--on",
}
"""The option by the name that an error of forecast() has for it."""


def add_forecast(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = parsers.add_parser(
        "forecast",
        help="how much memory will this training need, and will it fit?",
        description="Runs one update of the loop on tensors without memory and says what it would take.",
    )
    parser.set_defaults(run=_run)

    def add(option: str, help: str, usual: str, **kind: Any) -> None:
        # Assigned, because argparse adds a default of its own to the help of some options.
        parser.add_argument(option, **kind).help = f"{help} (default: {usual})"

    sizes = ", ".join(model_sizes())
    parser.add_argument(
        "what", help=f"{sizes}; the name of a task such as digits; or the path of a transformers config.json"
    )
    add("--batch", "rows in a batch", "1 for a language model, else the task's own", type=int, metavar="N")
    longest = "2,048, or fewer if the model reads fewer"
    add("--context", "tokens in a row, for a language model", longest, type=int, metavar="N")
    for name, switch in SWITCHES.items():
        if switch.option:
            default = getattr(Recipe(), name)
            kind: dict[str, Any] = {"action": argparse.BooleanOptionalAction}
            if not isinstance(switch, OnOff):
                kind = {"type": {Whole: int, Positive: float}.get(type(switch)), "metavar": switch.metavar}
            if isinstance(switch, Choice):
                kind["choices"] = switch.options
            add(switch.option, switch.help or "", switch.text(default), dest=name, default=default, **kind)
    add("--checkpoint", "keep the inputs of blocks, compute the rest again", "off", action="store_true")
    add("--dtype", "type of the weights", "fp32", choices=CHOICES["--dtype"])
    way = "PyTorch's way to run the optimizer, or another optimizer in its place"
    add("--optimizer-as", way, "foreach on a GPU, for-loop on a CPU", choices=CHOICES["--optimizer-as"])
    places = CHOICES["--zero-grad-at"]
    add("--zero-grad-at", "where zero_grad() stands", places[0], default=places[0], choices=places)
    add("--shard", "how a training on several cards is divided", "not at all", choices=CHOICES["--shard"])
    add("--cards", "number of cards, for --shard", "1", type=int, default=1, metavar="N")
    margin = "what the allocator reserves above what is allocated, as a share"
    add("--margin", margin, f"{RESERVE_MARGIN}", type=float, default=RESERVE_MARGIN, metavar="SHARE")
    add("--on", f"{', '.join(GPUS)}, a size such as 24GB, or a number of bytes", "no card", metavar="CARD")
    largest = ("batch", "window", "context")
    add("--largest", "find the largest that fits on the card", "not asked", choices=largest)


def _run(options: argparse.Namespace) -> int:
    try:
        return _forecast(options)
    except (ValueError, TypeError) as error:
        raise ValueError(_as_typed(str(error))) from error


def _as_typed(said: str) -> str:
    """Return what an error says with the options as they were typed, "--window 17" for "accumulate=17"."""
    said = said.replace("Forecast.largest:", "--largest")
    said = re.sub("^(forecast|Recipe|size_from_config): ", "", said)
    named = rf"(?:^|(?<=needs )|(?<= )(?=\w+=))({'|'.join(_OPTIONS)})(=|\b)"
    return re.sub(named, lambda found: _OPTIONS[found[1]] + found[2].replace("=", " "), said)


def _forecast(options: argparse.Namespace) -> int:
    recipe = Recipe(**{name: getattr(options, name) for name, switch in SWITCHES.items() if switch.option})
    card = None if options.on is None else card_name(options.on) or options.on
    if card is None and options.largest:
        raise ValueError("--largest needs a card: --on H100")
    if card is not None:
        usable_bytes(card)  # refused before torch is imported

    require_torch()
    from ..forecasting import forecast  # torch, at last

    found = forecast(
        options.what,
        recipe,
        batch=options.batch,
        context=options.context,
        checkpoint=options.checkpoint,
        device=None if card is None else "cuda",
        dtype=options.dtype,
        optimizer=options.optimizer_as,
        zero_grad_at=options.zero_grad_at.replace("-", " "),
        shard=options.shard,
        cards=options.cards,
        margin=options.margin,
    )
    if card is None:
        print(found.table())
        return FITS
    fits = found.fits(card)
    last = f"\n{'fits' if fits else 'does not fit'} on {card}"
    if options.largest:
        most = found.largest(options.largest, on=card)
        any_window = (options.largest, most) == ("window", LONGEST_WINDOW)
        free = " (the longest there is: it does not matter)" * any_window
        last = f"\nlargest {options.largest} on {card}: {most}{free}\n{last}"
    print(f"{found.table(card)}\n{last}")  # all at once, after what may still be refused
    return FITS if fits else TOO_SMALL
