"""Answers to the exercise ``flips_at``: right ones, and one for each typical mistake."""


def by_curvature(xs, divide):
    curvature = sum(2 * x**2 for x in xs)
    if divide:
        curvature /= len(xs)
    return 2 / curvature


def short(xs, divide):
    return (len(xs) if divide else 1) / sum(x**2 for x in xs)


def no_two(xs, divide):
    curvature = sum(x**2 for x in xs)
    return 2 / (curvature / len(xs)) if divide else 2 / curvature


def one(xs, divide):
    curvature = sum(2 * x**2 for x in xs)
    return 1 / (curvature / len(xs)) if divide else 1 / curvature


def wrong_way(xs, divide):
    limit = 1 / sum(x**2 for x in xs)
    return limit / len(xs) if divide else limit


def of_the_sum(xs, divide):
    limit = 1 / sum(xs) ** 2
    return limit * len(xs) if divide else limit


RIGHT = (by_curvature, short)
WRONG = {
    "lost-two": no_two,
    "best-lr": one,
    "never-divides": lambda xs, divide: 2 / sum(2 * x**2 for x in xs),
    "always-divides": lambda xs, divide: 2 / (sum(2 * x**2 for x in xs) / len(xs)),
    "wrong-way": wrong_way,
    "square-of-the-sum": of_the_sum,
}
