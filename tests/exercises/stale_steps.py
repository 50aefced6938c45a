"""Answers to the exercise ``stale_steps``: right ones, and one for each typical mistake."""


def book(history, *, clear=True, wanted=lambda old, new: old, name=lambda number, place: number):
    grads, found, number = [], [], 0
    for place, call in enumerate(history):
        if call == "zero":
            grads = [] if clear else grads
        elif call == "backward":
            grads = [*grads, "new"]
        else:
            number += 1
            if wanted("old" in grads, "new" in grads):
                found.append(name(number, place))
            grads = ["old" for _ in grads]
    return found


def as_they_come(history):
    yield from book(history)


def more_than_one(history):
    found, inside, number = [], [], 0
    for call in history:
        if call == "zero":
            inside = []
        elif call == "backward":
            inside.append(call)
        else:
            number += 1
            if len(inside) >= 2:
                found.append(number)
    return found


def a_step_before(history):
    found, number, before = [], 0, False
    for call in history:
        if call == "step":
            number += 1
            if before:
                found.append(number)
            before = True
        elif call == "zero":
            before = False
    return found


RIGHT = (book, as_they_come)
WRONG = {
    "windows": more_than_one,
    "never-clears": lambda history: book(history, clear=False),
    "from-zero": lambda history: book(history, name=lambda number, place: number - 1),
    "places": lambda history: book(history, name=lambda number, place: place),
    "the-others": lambda history: book(history, wanted=lambda old, new: not old),
    "new-ones-only": lambda history: book(history, wanted=lambda old, new: old and new),
    "empty": a_step_before,
}
