"""Answers to the exercise ``trains``: right ones, and one for each typical mistake."""

STANDARD = ["zero", "forward", "backward", "step"]


def turned(order, start):
    at = order.index(start)
    return order[at:] + order[:at]


def by_neighbours(order):
    return order[(order.index("backward") + 1) % 4] == "step"


def by_rings(order):
    return turned(order, "backward") in (
        ["backward", "step", "zero", "forward"],
        ["backward", "step", "forward", "zero"],
    )


def as_written(order):
    place = {word: at for at, word in enumerate(order)}
    between = place["backward"] < place["zero"] < place["step"]
    return place["forward"] < place["backward"] < place["step"] and not between


def no_clearing_between(order):
    word = turned(order, "backward")[1:]
    return word.index("step") < word.index("zero")


RIGHT = (by_neighbours, by_rings)
WRONG = {
    "standard-only": lambda order: order == STANDARD,
    "one-ring": lambda order: turned(order, "zero") == STANDARD,
    "as-written": as_written,
    "zero-as-written": lambda order: not order.index("backward") < order.index("zero") < order.index("step"),
    "forward-between": no_clearing_between,
    "all": lambda order: True,
    "none": lambda order: False,
}
