"""Right answers to the exercise ``verdict_of``."""


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


RIGHT = (verdict_of, with_a_set)
