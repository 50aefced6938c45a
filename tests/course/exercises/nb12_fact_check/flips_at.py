"""Right answers to the exercise ``flips_at``."""


def by_curvature(xs, divide):
    curvature = sum(2 * x**2 for x in xs)
    if divide:
        curvature /= len(xs)
    return 2 / curvature


def short(xs, divide):
    return (len(xs) if divide else 1) / sum(x**2 for x in xs)


RIGHT = (by_curvature, short)
