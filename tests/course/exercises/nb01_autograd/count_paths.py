"""Right answers to the exercise ``count_paths``."""

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


RIGHT = (by_itself, level_by_level)
