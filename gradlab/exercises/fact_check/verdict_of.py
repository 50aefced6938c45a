"""The exercise ``verdict_of``: the rule itself."""

from __future__ import annotations

import random
from typing import Any

from ..base import Exercise, Mistake


def _known(facts: dict[str, bool | None]) -> list[bool]:
    return [fact for fact in facts.values() if fact is not None]


def _ruled(facts: list[bool]) -> str:
    return "holds" if all(facts) else "depends" if any(facts) else "does not hold"


class VerdictOf(Exercise):
    """The rule that this notebook judges by."""

    name = "verdict_of"
    notebook = "12_fact_check"
    title = "The rule itself"
    level, minutes = "easy", 4
    spec = (
        "Write `verdict_of(facts)`: given a dict of facts, each True, False or None (could not be tried), return "
        '"holds", "depends", "does not hold", or "not judged" if nothing could be tried.'
    )
    stub = """
def verdict_of(facts):
    return None  # your answer
"""
    hints = (
        "First take out what could not be tried. What is left is a list of True and False.",
        "`all(known)` and `any(known)` are two of the three questions. What do they say about an empty list?",
        "Ask for the empty list before you ask for `all`, because `all([])` is True.",
    )
    mistakes = (
        Mistake(
            "all-of-nothing",
            "Nothing was tried, and you rule on it: `all([])` is True, `any([])` is False.",
            lambda facts: _ruled(_known(facts)),
        ),
        Mistake(
            "not-any-of-nothing",
            "Nothing was tried, and you say that it does not hold. That is a verdict, too.",
            lambda facts: "does not hold" if not any(_known(facts)) else _ruled(_known(facts)),
        ),
        Mistake(
            "none-is-false",
            "You count None as False. What could not be tried does not speak against a claim.",
            lambda facts: _ruled([bool(fact) for fact in facts.values()]) if _known(facts) else "not judged",
        ),
        Mistake(
            "all-of-all",
            "You count None as False. Take out what could not be tried, and see whether anything is left.",
            lambda facts: _ruled([bool(fact) for fact in facts.values()]),
        ),
        Mistake(
            "never-depends",
            "You know black and white only: true in some cases and not in others is its own verdict.",
            lambda facts: ("holds" if all(_known(facts)) else "does not hold") if _known(facts) else "not judged",
        ),
        Mistake(
            "one-is-enough",
            "One case in which it is true is not enough for a claim to hold.",
            lambda facts: ("holds" if any(_known(facts)) else "does not hold") if _known(facts) else "not judged",
        ),
    )
    rounds = 60  # so that each of the five kinds of case comes up

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return facts of one of five kinds: all true, none, some, none known, true as far as known."""
        kinds: tuple[tuple[bool | None, ...], ...] = ((True,), (False,), (True, False), (None,), (True, None))
        kind = dice.choice(kinds)
        facts = [*kind, *(dice.choice(kind) for _ in range(dice.randrange(3)))]
        dice.shuffle(facts)
        return ({f"case {at}": fact for at, fact in enumerate(facts, 1)},)

    def right(self, facts: dict[str, bool | None]) -> Any:
        """Count: how many were tried, how many of them are true."""
        tried = sum(fact is not None for fact in facts.values())
        true = sum(fact is True for fact in facts.values())
        return "not judged" if not tried else {tried: "holds", 0: "does not hold"}.get(true, "depends")
