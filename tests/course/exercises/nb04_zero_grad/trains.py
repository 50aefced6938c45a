"""Right answers to the exercise ``trains``."""


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


RIGHT = (by_neighbours, by_rings)
