"""Right answers to the exercise ``memory_gradient``."""


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


RIGHT = (backwards, forwards)
