"""Answers to the exercise ``count_paths``: right ones, and one for each typical mistake."""

from collections import Counter


def by_itself(node):
    if node is None:
        return 0
    if not node.next_functions:
        return 1
    return sum(by_itself(target) for target, _ in node.next_functions)


def level_by_level(node):
    arrived, here = 0, Counter([node])
    while here:
        after = Counter()
        for one, ways in here.items():
            if one.name().endswith("AccumulateGrad"):
                arrived += ways
            for target, _ in one.next_functions:
                if target is not None:
                    after[target] += ways
        here = after
    return arrived


def with_a_set(node):
    seen, stack, arrived = set(), [node], 0
    while stack:
        here = stack.pop()
        if here is None:
            continue
        if not here.next_functions:
            arrived += 1
        elif here not in seen:
            seen.add(here)
            stack += [target for target, _ in here.next_functions]
    return arrived


def with_constants(node):
    if node is None or not node.next_functions:
        return 1
    return sum(with_constants(target) for target, _ in node.next_functions)


def all_nodes(node, seen=None):
    seen = set() if seen is None else seen
    if node is not None and node not in seen:
        seen.add(node)
        for target, _ in node.next_functions:
            all_nodes(target, seen)
    return len(seen)


def depth(node):
    return max((1 + depth(target) for target, _ in node.next_functions if target is not None), default=0)


RIGHT = (by_itself, level_by_level)
WRONG = {
    "arrived-once": lambda node: min(1, by_itself(node)),
    "visited-once": with_a_set,
    "dead-ends": with_constants,
    "nodes": all_nodes,
    "longest": depth,
    "off-by-one": lambda node: 1 + by_itself(node),
}
