"""The controls of a lab as plain data for the browser, made from what each switch declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import tasks
from ..forecast import GPUS
from ..loop import SWITCHES, Choice, OnOff, Positive, Recipe, Run, Switch, Whole
from .code import coloured

CONTROLS = ("task", *SWITCHES, "card", "edit", "speed")
"""What ``controls=[...]`` may ask for; "card" is the graphics card that memory is held against, "edit" the button under
the code, "speed" the choice beside Play."""
DEFAULT = tuple(name for name in CONTROLS if name != "card")
"""What a Lab has unless it is asked for something else."""
SPEEDS = (
    ("statements", 0.0),
    ("1 update/s", 1.0),
    ("10 updates/s", 10.0),
    ("60 updates/s", 60.0),
    ("full speed", None),
)
"""Words and updates a second: 0 for a statement at a time, None for as fast as it goes."""
USUAL_SPEED = "60 updates/s"
"""At which a Lab plays unless it is asked for another."""
USUAL_EVERY = 1000 / 60
"""ms for which an update is seen at that speed."""

UNSWITCHED = "unswitched"
"""The tick of every lab with switches and a loss: whether it shows how the loss goes on without the newest switch."""

Control = dict[str, Any]


def lab_settings(run: Run, names: Sequence[str], card: str, speed: str, ticks: Mapping[str, bool]) -> dict[str, Any]:
    """Return what a frame tells of a Lab's loop and controls: those of these names, and ``ticks`` with their values."""
    own = "this GPU" if run.task.device.startswith("cuda") else "none"
    return {
        "code": {"source": run.source, "html": coloured(run.source)},
        "controls": lab_controls([*names, *ticks], tasks.names(), own, run.recipe),
        "values": {**switch_values(run.recipe), "task": run.task.name, "card": card, **ticks},
        "off": without_effect(run.recipe),
        "speeds": [list(each) for each in SPEEDS] if "speed" in names else [],
        "speed": dict(SPEEDS)[speed],
        "editable": "edit" in names,
    }


def lab_controls(names: Iterable[str], known: Sequence[str], own: str, recipe: Recipe) -> list[Control]:
    """Describe the controls of a Lab that were asked for, in the usual order; ``own`` is the word for no card chosen.

    A value of the recipe that is not among the offered ones is offered too.
    """
    makers = {
        "task": lambda: choice_control("task", "task", [(name, name) for name in known]),
        **{n: lambda n=n, s=s: switch_control(n, s, getattr(recipe, n)) for n, s in SWITCHES.items()},  # type: ignore[misc]
        "card": lambda: choice_control("card", "card", [(own, ""), *((name, name) for name in GPUS)]),
        UNSWITCHED: lambda: {"name": UNSWITCHED, "label": "show without the switch", "kind": "tick"},
    }
    asked = set(names)
    return [make() for name, make in makers.items() if name in asked]


def switch_control(name: str, switch: Switch, value: Any) -> Control:
    """Describe the control of a switch."""
    label = switch.label or name
    if isinstance(switch, OnOff):
        return {"name": name, "label": label, "kind": "tick"}
    if isinstance(switch, Choice):
        return choice_control(name, label, [(each, each) for each in switch.options])
    if isinstance(switch, Whole):
        return whole_control(name, label, switch.low, switch.high)
    if isinstance(switch, Positive) and switch.offered:
        offered = sorted({*switch.offered, *([value] if value is not None else [])})
        return choice_control(name, label, [("off", "off"), *((switch.text(each), each) for each in offered)])
    return {"name": name, "label": label, "kind": "number"}


def choice_control(name: str, label: str, options: Sequence[tuple[str, Any]]) -> Control:
    """Describe a list to choose from: words and value of each option."""
    return {"name": name, "label": label, "kind": "choice", "options": [list(option) for option in options]}


def whole_control(name: str, label: str, low: int, high: int) -> Control:
    """Describe a field for a whole number within a range."""
    return {"name": name, "label": label, "kind": "whole", "low": low, "high": high}


def switch_values(recipe: Recipe) -> dict[str, Any]:
    """Return what the controls of the switches show: ticks and choices as they are, numbers as text."""
    return {name: _shown(switch, getattr(recipe, name)) for name, switch in SWITCHES.items()}


def without_effect(recipe: Recipe) -> list[str]:
    """Return the switches that have no effect now, to be greyed out."""
    return [name for name, switch in SWITCHES.items() if not switch.matters(recipe)]


def _shown(switch: Switch, value: Any) -> Any:
    if isinstance(switch, Positive):
        return value if switch.offered and value is not None else switch.text(value)
    return str(value) if isinstance(switch, Whole) else value
