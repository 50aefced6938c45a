"""What schedulers are made for: for how many steps, and in which loops they are made and stepped."""

from __future__ import annotations

import ast
import math
import operator
import re
import weakref
from contextlib import suppress
from types import FrameType
from typing import Any

from torch import Tensor

from ..._frames import variables
from ..events import SchedulePlan
from ..frames import call_chain, call_lines
from ..source.loop_nesting import loops_around

_MOST = 256
_LENGTHS = ("total_steps", "T_max", "total_iters", "total_size", "step_size")
_OPERATIONS: dict[type[ast.operator], Any] = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
_NAMED_AS_LENGTH = re.compile(r"total|max|training|num_(steps|iter|updates)|t_max", re.IGNORECASE)


class SchedulePlans:
    """The plans of the schedulers that were seen."""

    def __init__(self) -> None:
        self._plans: dict[int, tuple[weakref.ref[Any], SchedulePlan]] = {}

    def made(self, scheduler: Any, frame: FrameType | None) -> None:
        """Note where a scheduler is made; the frame is that of its first caller."""
        if len(self._plans) >= _MOST:
            self._plans.clear()
        plan = SchedulePlan(type(scheduler).__name__, made=call_lines(frame))
        self._plans[id(scheduler)] = weakref.ref(scheduler), plan

    def of(self, scheduler: Any, frame: FrameType | None) -> SchedulePlan:
        """Return the plan of a scheduler that has stepped; the frame is that of its first caller."""
        known = self._plans.get(id(scheduler))
        if known is None or known[0]() is not scheduler:
            self.made(scheduler, None)
            known = self._plans[id(scheduler)]
        plan = known[1]
        if not plan.made:  # one that is made of others takes no step of its own when it is made
            parts = [self._plans.get(id(part)) for part in getattr(scheduler, "_schedulers", ())]
            plan.made = next((part[1].made for part in parts if part is not None), ())
        if not plan.called:
            frames = call_chain(frame)
            plan.called = call_lines(frame)
            plan.length = planned_length(scheduler)
            plan.halves = hasattr(scheduler, "T_max")
            plan.epochs = _epochs(plan, frames)
        return plan


def greatest_lr(scheduler: Any) -> float:
    """Return the greatest learning rate of a scheduler's optimizer; NaN if that would mean to wait for a GPU."""
    groups = getattr(getattr(scheduler, "optimizer", None), "param_groups", [])
    rates = [group.get("lr", math.nan) for group in groups]
    if len(rates) == 1 and type(rates[0]) is float:  # nearly always
        return rates[0]
    if not rates or any(isinstance(lr, Tensor) and lr.device.type != "cpu" for lr in rates):
        return math.nan
    return max(float(lr) for lr in rates)


def planned_length(scheduler: Any) -> int:
    """Return how many steps a scheduler plans for, or waits between two changes; 0 if that is not known."""
    parts, milestones = getattr(scheduler, "_schedulers", None), getattr(scheduler, "_milestones", None)
    if parts and milestones:  # one after the other
        last = planned_length(parts[-1])
        return milestones[-1] + last if last else 0
    if (milestones := getattr(scheduler, "milestones", None)) is not None:
        return int(max(milestones, default=0))
    for function in getattr(scheduler, "lr_lambdas", ()):
        return max((value for name, value in _knows(function) if _NAMED_AS_LENGTH.search(name)), default=0)
    lengths = [getattr(scheduler, name, None) for name in _LENGTHS]
    return next((int(length) for length in lengths if isinstance(length, (int, float)) and length < math.inf), 0)


def _knows(function: Any) -> list[tuple[str, int]]:
    """Return the whole numbers that a function uses, by the names that it has for them."""
    named = dict(getattr(function, "keywords", {}))  # of a partial, as in transformers' schedules
    code = getattr(function, "__code__", None)
    if code is not None:
        named |= {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            with suppress(ValueError):  # nothing was assigned yet
                named[name] = cell.cell_contents
    return [(name, value) for name, value in named.items() if type(value) is int]


def _epochs(plan: SchedulePlan, frames: list[FrameType]) -> int:
    """Return how often the loop around the innermost loop runs, as the limit of its ``range`` tells."""
    around = set(loops_around(plan.made))
    loops = [loop for loop in loops_around(plan.called) if loop not in around]
    if len(loops) < 2:
        return 0
    known = [value for frame in frames for limit in loops[1].limits if (value := _value(limit, frame)) > 0]
    return max(known, default=0)


def _value(words: str, frame: FrameType) -> int:
    """Return the whole number that an expression of literals, variables, attributes and keys stands for; else 0."""
    try:
        value = _evaluated(ast.parse(words, mode="eval").body, {**frame.f_globals, **variables(frame)})
    except (KeyError, IndexError, TypeError, SyntaxError):
        return 0
    return value if isinstance(value, int) else 0


def _evaluated(node: ast.expr, names: dict[str, Any]) -> Any:
    """Look a value up without running any code of the learner's."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.Attribute):
        return vars(_evaluated(node.value, names))[node.attr]
    if isinstance(node, ast.Subscript):
        holder = _evaluated(node.value, names)
        return holder[_evaluated(node.slice, names)] if type(holder) in (dict, list, tuple) else 0
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = _evaluated(node.left, names), _evaluated(node.right, names)
        return _OPERATIONS[type(node.op)](left, right) if type(left) is type(right) is int else 0
    return 0
