"""The exercise ``verdict_of``."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection

from ..definition import Case, Definition

Facts = dict[str, bool | None]


def case(rng: random.Random) -> Case:
    """Return facts of one of five kinds: all true, none, some, none known, true as far as known."""
    kinds: tuple[tuple[bool | None, ...], ...] = ((True,), (False,), (True, False), (None,), (True, None))
    kind = rng.choice(kinds)
    facts = [*kind, *(rng.choice(kind) for _ in range(rng.randrange(3)))]
    rng.shuffle(facts)
    return Case({f"case {at}": fact for at, fact in enumerate(facts, 1)})


def reference(facts: Facts) -> str:
    """Count: how many were tried, how many of them are true."""
    tried = sum(fact is not None for fact in facts.values())
    true = sum(fact is True for fact in facts.values())
    return "not judged" if not tried else {tried: "holds", 0: "does not hold"}.get(true, "depends")


def known(facts: Facts) -> list[bool]:
    return [fact for fact in facts.values() if fact is not None]


def ruled(facts: Collection[bool | None]) -> str:
    return "holds" if all(facts) else "depends" if any(facts) else "does not hold"


def if_any_known(rule: Callable[[Facts], str]) -> Callable[[Facts], str]:
    return lambda facts: rule(facts) if known(facts) else "not judged"


DEFINITION = Definition(
    case=case,
    reference=reference,
    mistakes={
        "all-of-nothing": lambda facts: ruled(known(facts)),
        "not-any-of-nothing": lambda facts: ruled(known(facts)) if known(facts) else "does not hold",
        "none-is-false": if_any_known(lambda facts: ruled(facts.values())),
        "all-of-all": lambda facts: ruled(facts.values()),
        "never-depends": if_any_known(lambda facts: "holds" if all(known(facts)) else "does not hold"),
        "one-is-enough": if_any_known(lambda facts: "holds" if any(known(facts)) else "does not hold"),
    },
    rounds=60,  # so that each of the five kinds of case comes up
)
