"""Answers to the exercise ``memory_gradient``: right ones, and one for each typical mistake."""


def walk(w, xs, goal):
    """Every h before its step, and the last one."""
    h, before = 0.0, []
    for x in xs:
        before.append(h)
        h = w * h + x
    return before, h


def backwards(w, xs, goal):
    before, h = walk(w, xs, goal)
    arriving, gradient = 2 * (h - goal), 0.0
    for value in reversed(before):
        gradient += arriving * value
        arriving *= w
    return gradient


def forwards(w, xs, goal):
    h = slope = 0.0
    for x in xs:
        slope = h + w * slope
        h = w * h + x
    return 2 * (h - goal) * slope


def writes(w, xs, goal):
    before, h = walk(w, xs, goal)
    arriving, gradient = 2 * (h - goal), 0.0
    for value in reversed(before):
        gradient = arriving * value
        arriving *= w
    return gradient


def last_use(w, xs, goal):
    before, h = walk(w, xs, goal)
    return 2 * (h - goal) * before[-1]


def no_chain(w, xs, goal):
    before, h = walk(w, xs, goal)
    return 2 * (h - goal) * sum(before)


RIGHT = (backwards, forwards)
WRONG = {
    "writes": writes,
    "last-use-only": last_use,
    "not-passed-on": no_chain,
    "mean": lambda w, xs, goal: backwards(w, xs, goal) / len(xs),
    "lost-two": lambda w, xs, goal: backwards(w, xs, goal) / 2,
}
