"""``gradlab forecast``: the memory a training needs. Exit codes: 0 it fits (or no card was named), 1 it does not."""

from __future__ import annotations

import argparse
from typing import Any

from .._torch import require_torch
from ..forecasting import GPUS, card_name, model_sizes, usable_bytes
from ..loop import SWITCHES, Choice, OnOff, Positive, Recipe, Whole
from . import Parsers

FITS, TOO_SMALL = 0, 1
# What forecast() takes, written down here because the modules that check it import torch.
CHOICES = {
    "--dtype": ("fp32", "bf16", "fp16"),
    "--optimizer-as": ("adamw-8bit",),
    "--shard": ("ddp", "zero1", "zero2", "zero3", "fsdp"),
}


def add_forecast(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = parsers.add_parser(
        "forecast",
        help="how much memory will this training need, and will it fit?",
        description="Runs one update of the loop on tensors without memory and says what it would take.",
    )
    parser.set_defaults(run=_run)

    def add(option: str, help: str, default_text: str, **argparse_kwargs: Any) -> None:
        # Assigned, because argparse adds a default of its own to the help of some options.
        parser.add_argument(option, **argparse_kwargs).help = f"{help} (default: {default_text})"

    parser.add_argument("what", help=f"{', '.join(model_sizes())}; or the name of a task such as digits")
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
    add("--optimizer-as", "an optimizer in its place", "that of --optimizer", choices=CHOICES["--optimizer-as"])
    add("--shard", "how a training on several cards is divided", "not at all", choices=CHOICES["--shard"])
    add("--cards", "number of cards, for --shard", "1", type=int, default=1, metavar="N")
    add("--on", f"{', '.join(GPUS)}, a size such as 24GB, or a number of bytes", "no card", metavar="CARD")
    add("--largest", "find the largest that fits on the card", "not asked", choices=("batch",))


def _run(options: argparse.Namespace) -> int:
    try:
        recipe = Recipe(**{name: getattr(options, name) for name, switch in SWITCHES.items() if switch.option})
    except ValueError as error:
        raise ValueError(str(error).removeprefix("Recipe: ").replace("accumulate", "--window")) from error
    card = None if options.on is None else card_name(options.on) or options.on
    if card is None and options.largest:
        raise ValueError("--largest needs a card: --on H100")
    if card is not None:
        usable_bytes(card)  # refused before torch is imported

    require_torch()
    from ..forecasting import forecast  # torch, at last

    result = forecast(
        options.what,
        recipe,
        batch=options.batch,
        context=options.context,
        checkpoint=options.checkpoint,
        device=None if card is None else "cuda",
        dtype=options.dtype,
        optimizer=options.optimizer_as,
        shard=options.shard,
        cards=options.cards,
    )
    if card is None:
        print(result.table())
        return FITS
    fits = result.fits(card)
    largest = f"\nlargest batch on {card}: {result.largest('batch', on=card)}\n" if options.largest else ""
    # All at once, after what may still be refused.
    print(f"{result.table(card)}\n{largest}\n{'fits' if fits else 'does not fit'} on {card}")
    return FITS if fits else TOO_SMALL
