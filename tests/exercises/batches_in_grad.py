"""Answers to the exercise ``batches_in_grad``: right ones, and one for each typical mistake."""


def by_arithmetic(updates, accumulate, zero_grad):
    return accumulate if zero_grad else updates * accumulate


def by_counting(updates, accumulate, zero_grad):
    held = 0
    for _ in range(updates):
        held = 0 if zero_grad else held
        held += accumulate
    return held


def a_window_late(updates, accumulate, zero_grad):
    held = 0
    for _ in range(updates - 1):
        held += accumulate
    return 0 if zero_grad else held


RIGHT = (by_arithmetic, by_counting)
WRONG = {
    "empty": lambda updates, accumulate, zero_grad: 0,
    "emptied-after": lambda updates, accumulate, zero_grad: 0 if zero_grad else by_counting(updates, accumulate, False),
    "always-a-window": lambda updates, accumulate, zero_grad: accumulate,
    "never-cleared": lambda updates, accumulate, zero_grad: sum([accumulate] * updates),
    "without-the-newest": a_window_late,
    "updates": lambda updates, accumulate, zero_grad: updates if not zero_grad else 1,
    "the-other-way": lambda updates, accumulate, zero_grad: by_arithmetic(updates, accumulate, not zero_grad),
}
