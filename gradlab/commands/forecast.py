"""``gradlab forecast``: the memory of a training run. Exit codes: 0 if it fits or no card is named, 1 otherwise."""

from __future__ import annotations

import argparse
from typing import Any

from .._torch import require_torch
from ..forecasting import GPUS, card_name, model_sizes, usable_bytes
from ..loop import SWITCHES, Choice, OnOff, Positive, Recipe, Whole
from . import Parsers

# The values that forecast() accepts, repeated here because the modules that check them import torch.
CHOICES = {
    "--dtype": ("fp32", "bf16", "fp16"),
    "--optimizer-as": ("adamw-8bit",),
    "--shard": ("ddp", "zero1", "zero2", "zero3", "fsdp"),
}


def add_forecast(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Add ``gradlab forecast`` and its options to ``parsers``."""
    parser = parsers.add_parser(
        "forecast",
        help="forecast the memory that a training run needs, and whether it fits a card",
        description="Runs the loop on tensors without memory and reports the memory that one update would take.",
    )
    parser.set_defaults(run=_run)

    def add(option: str, help: str, default_text: str, **argparse_kwargs: Any) -> None:
        # The help is assigned afterwards, because argparse adds its own default to that of some options.
        parser.add_argument(option, **argparse_kwargs).help = f"{help} (default: {default_text})"

    parser.add_argument("what", help=f"a model size ({', '.join(model_sizes())}) or a task, such as digits")
    add("--batch", "rows in a batch", "1 for a language model, else the task's own", type=int, metavar="N")
    longest = "2,048, or the model's maximum if that is smaller"
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
    add("--checkpoint", "keep only the inputs of repeated blocks, recompute the rest", "off", action="store_true")
    add("--dtype", "dtype of the weights", "fp32", choices=CHOICES["--dtype"])
    add("--optimizer-as", "optimizer to use instead", "that of --optimizer", choices=CHOICES["--optimizer-as"])
    add("--shard", "how the training is sharded over several cards", "not at all", choices=CHOICES["--shard"])
    add("--cards", "number of cards, for --shard", "1", type=int, default=1, metavar="N")
    add("--on", f"{', '.join(GPUS)}, a size such as 24GB, or a number of bytes", "no card", metavar="CARD")
    add("--largest", "find the largest value that fits on the card", "off", choices=("batch",))


def _run(options: argparse.Namespace) -> int:
    try:
        recipe = Recipe(**{name: getattr(options, name) for name, switch in SWITCHES.items() if switch.option})
    except ValueError as error:
        raise ValueError(str(error).removeprefix("Recipe: ").replace("accumulate", "--window")) from error
    card = None if options.on is None else card_name(options.on) or options.on
    if card is None and options.largest:
        raise ValueError("--largest needs a card, such as --on H100")
    if card is not None:
        usable_bytes(card)  # raises an error for an invalid card before torch is imported

    require_torch()
    from ..forecasting import forecast  # imports torch

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
        return 0
    fits = result.fits(card)
    largest = f"\nlargest batch on {card}: {result.largest('batch', on=card)}\n" if options.largest else ""
    # The report is printed all at once, after everything that may raise an error.
    print(f"{result.table(card)}\n{largest}\n{'fits' if fits else 'does not fit'} on {card}")
    return 0 if fits else 1
