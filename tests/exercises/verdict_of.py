"""Answers to the exercise ``verdict_of``: right ones, and one for each typical mistake."""


def verdict_of(facts):
    known = [fact for fact in facts.values() if fact is not None]
    if not known:
        return "not judged"
    if all(known):
        return "holds"
    return "depends" if any(known) else "does not hold"


def with_a_set(facts):
    seen = set(facts.values()) - {None}
    if seen == {True, False}:
        return "depends"
    return {True: "holds", False: "does not hold"}[seen.pop()] if seen else "not judged"


def no_empty(facts):
    known = [fact for fact in facts.values() if fact is not None]
    if all(known):
        return "holds"
    return "depends" if any(known) else "does not hold"


def none_first(facts):
    known = [fact for fact in facts.values() if fact is not None]
    if not any(known):
        return "does not hold"
    return "holds" if all(known) else "depends"


def truthy(facts):
    if all(fact is None for fact in facts.values()):
        return "not judged"
    if all(facts.values()):
        return "holds"
    return "depends" if any(facts.values()) else "does not hold"


def at_once(facts):
    if all(facts.values()):
        return "holds"
    return "depends" if any(facts.values()) else "does not hold"


def strict(facts):
    known = [fact for fact in facts.values() if fact is not None]
    if not known:
        return "not judged"
    return "holds" if all(known) else "does not hold"


def lenient(facts):
    known = [fact for fact in facts.values() if fact is not None]
    if not known:
        return "not judged"
    return "holds" if any(known) else "does not hold"


RIGHT = (verdict_of, with_a_set)
WRONG = {
    "all-of-nothing": no_empty,
    "not-any-of-nothing": none_first,
    "none-is-false": truthy,
    "all-of-all": at_once,
    "never-depends": strict,
    "one-is-enough": lenient,
}
