"""The exercise ``count_paths``: count the ways."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from ..base import Exercise, Mistake


def _walk(node: Any, found: Callable[[Any], int], *, once: bool = False, ends: int = 0) -> int:
    """Walk every way down from a node and add up what is found; ``once`` enters each node one time only."""
    seen: set[Any] = set()

    def down(here: Any) -> int:
        if here is None:
            return ends
        if once and here in seen and here.next_functions:
            return 0
        seen.add(here)
        return found(here) + sum(down(target) for target, _ in here.next_functions)

    return down(node)


def _is_last(node: Any) -> int:
    return int(not node.next_functions)


def _longest(node: Any) -> int:
    return 1 + max((_longest(target) for target, _ in node.next_functions if target is not None), default=-1)


def _distinct(node: Any) -> int:
    found, waiting = {node}, [node]
    while waiting:
        new = {target for target, _ in waiting.pop().next_functions if target is not None} - found
        found |= new
        waiting += new
    return len(found)


class CountPaths(Exercise):
    """The sum over all ways is what backward computes."""

    name = "count_paths"
    notebook = "01_autograd"
    title = "Count the ways"
    level, minutes = "harder", 12
    spec = (
        "Write `count_paths(node)`: given the `grad_fn` of a loss that was made from one weight by additions only, "
        "return in how many ways one can walk along `next_functions` to `AccumulateGrad`."
    )
    stub = """
def count_paths(node):
    return None  # your answer
"""
    hints = (
        "`node.next_functions` is a tuple of pairs, (node, number). A constant stands there as None.",
        "From AccumulateGrad there is one way: you have arrived. It is the node without next_functions.",
        "From any other node there are as many ways as from all its next nodes together. A function may call itself.",
    )
    mistakes = (
        Mistake(
            "arrived-once",
            "You arrive once. But there are many ways to arrive, and each brings a gradient of its own.",
            lambda node: 1,
        ),
        Mistake(
            "visited-once",
            "You enter each node once, as one does to find out what can be reached. A node that two ways lead to "
            "must be counted for both.",
            lambda node: _walk(node, _is_last, once=True),
        ),
        Mistake(
            "dead-ends",
            "You count the constants, too: a None in next_functions is a way that leads nowhere.",
            lambda node: _walk(node, _is_last, ends=1),
        ),
        Mistake("nodes", "That is the number of nodes, not of ways.", _distinct),
        Mistake("longest", "That is how long the longest way is, not how many there are.", _longest),
        Mistake("off-by-one", "One too many: do you count the beginning as a way?", lambda n: _walk(n, _is_last) + 1),
    )

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return the grad_fn of a random sum of sums of one weight and of constants."""
        self._weight = torch.zeros((), requires_grad=True)
        made = [self._weight]
        for number in range(dice.randint(4, 8)):
            other = 1.0 if number and dice.random() < 0.3 else dice.choice(made)
            made.append(made[-1] + other if dice.random() < 0.7 else dice.choice(made[-2:]) + other)
        self._loss = made[-1]
        return (self._loss.grad_fn,)

    def right(self, node: Any) -> Any:
        """Each way brings a gradient of 1, and backward adds them up: the number of ways is in .grad."""
        self._loss.backward()
        assert self._weight.grad is not None
        return int(self._weight.grad)

    def told(self, *arguments: Any) -> str:
        """Say how large the graph is."""
        return f"a graph of {_distinct(arguments[0])} nodes"
