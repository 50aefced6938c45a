"""Right answers to the exercise ``stale_steps``."""


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


RIGHT = (book, as_they_come)
