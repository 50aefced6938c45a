"""``gradlab forecast``: the memory a training needs. Exit codes: 0 it fits (or no card was named), 1 it does not."""

from __future__ import annotations

import argparse
from typing import Any

from .._torch import require_torch
from ..forecast import GPUS, card_name, model_sizes, usable_bytes
from ..loop import LONGEST_WINDOW, SWITCHES, Choice, OnOff, Positive, Recipe, Whole
from . import Parsers

FITS, TOO_SMALL = 0, 1


def add_forecast(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = parsers.add_parser(
        "forecast",
        help="how much memory will this training need, and will it fit?",
        description="Runs one update of the loop on tensors without memory and says what it would take.",
    )
    parser.set_defaults(run=_run)
    parser.add_argument("what", help=f"{', '.join(model_sizes())}, or the name of a task such as digits")
    parser.add_argument("--batch", type=int, metavar="N", help="rows in a batch")
    parser.add_argument("--context", type=int, metavar="N", help="tokens in a row, for a language model")
    for name, switch in SWITCHES.items():
        if switch.option:
            kind: dict[str, Any] = {"action": argparse.BooleanOptionalAction}
            if not isinstance(switch, OnOff):
                kind = {"type": {Whole: int, Positive: float}.get(type(switch)), "metavar": switch.metavar}
            if isinstance(switch, Choice):
                kind["choices"] = switch.options
            parser.add_argument(switch.option, dest=name, default=getattr(Recipe(), name), help=switch.help, **kind)
    parser.add_argument("--checkpoint", action="store_true", help="keep the inputs of blocks, compute the rest again")
    parser.add_argument("--on", metavar="CARD", help=f"{', '.join(GPUS)}, a size such as 24GB, or a number of bytes")
    parser.add_argument("--largest", choices=("batch", "window"), help="the largest that fits on the card")


def _run(options: argparse.Namespace) -> int:
    recipe = Recipe(**{name: getattr(options, name) for name, switch in SWITCHES.items() if switch.option})
    card = None if options.on is None else card_name(options.on) or options.on
    if card is None and options.largest:
        raise ValueError("--largest needs a card: --on H100")
    usable = None if card is None else usable_bytes(card)

    require_torch()
    from ..forecast import forecast  # torch, at last

    device = None if card is None else "cuda"
    asked = {"batch": options.batch, "context": options.context, "checkpoint": options.checkpoint, "device": device}
    found = forecast(options.what, recipe, **asked)
    print(found.table())
    if usable is None:
        return FITS
    if options.largest:
        most = found.largest(options.largest, on=usable)
        free = (
            " (the longest there is: it does not matter)"
            if (options.largest, most) == ("window", LONGEST_WINDOW)
            else ""
        )
        print(f"\nlargest {options.largest} on {card}: {most}{free}")
    fits = found.fits(usable)
    print(f"\n{'fits' if fits else 'does not fit'} on {card}")
    return FITS if fits else TOO_SMALL
