"""The command line: ``python -m gradlab forecast llama-8b --on H100`` and ``python -m gradlab doctor train.py``.

Exit codes of forecast: 0 it fits (or no card was named), 1 it does not fit, 2 bad input, told in one line. Of doctor:
0 nothing is wrong, 1 there are findings, 2 the script could not be run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .forecast import GPUS, model_sizes, usable_bytes
from .loop import LONGEST_WINDOW, SWITCHES, Choice, OnOff, Positive, Recipe, Whole

FITS, TOO_SMALL, BAD_INPUT = 0, 1, 2


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; the usage is for --help."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; ``arguments`` are those of the command line unless given."""
    parser = _Parser(prog="python -m gradlab", description="What happens to .grad, and to memory, in a training loop.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", parser_class=_Parser)
    _add_forecast(commands)
    _add_doctor(commands)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except (ValueError, TypeError) as error:
        print(f"{parser.prog} {options.command}: {_one_line(error)}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return 130  # as a shell says it


def _add_forecast(commands: Any) -> None:
    parser = commands.add_parser(
        "forecast",
        help="how much memory will this training need, and will it fit?",
        description="Runs one update of the loop on tensors without memory and says what it would take.",
    )
    parser.set_defaults(run=_forecast)
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
    parser.add_argument("--on", metavar="CARD", help=f"{', '.join(GPUS)}, or a number of bytes")
    parser.add_argument("--largest", choices=("batch", "window"), help="the largest that fits on the card")


def _add_doctor(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor",
        help="run a training script and say what is wrong with its loop",
        description="Runs a script, unchanged, as python would, and prints what is wrong with its training loop.",
    )
    parser.set_defaults(run=_doctor)
    parser.add_argument("--json", action="store_true", help="print the report alone, as JSON")
    parser.add_argument("script", help="the path of a Python script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script itself is given")


def _doctor(options: argparse.Namespace) -> int:
    from .doctor import run_script  # torch, at last

    return run_script(options.script, options.arguments, as_json=options.json)


def _forecast(options: argparse.Namespace) -> int:
    recipe = Recipe(**{name: getattr(options, name) for name, switch in SWITCHES.items() if switch.option})
    card = int(options.on) if options.on is not None and options.on.lstrip("-").isdecimal() else options.on
    if card is None and options.largest:
        raise ValueError("--largest needs a card: --on H100")
    usable = None if card is None else usable_bytes(card)

    from .forecast import forecast  # torch, at last

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
        print(f"\nlargest {options.largest} on {options.on}: {most}{free}")
    fits = found.fits(usable)
    print(f"\n{'fits' if fits else 'does not fit'} on {options.on}")
    return FITS if fits else TOO_SMALL


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).removeprefix("forecast: ")


if __name__ == "__main__":
    raise SystemExit(main())
