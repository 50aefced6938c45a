"""Answers to the exercise ``bytes_moved``: the right one, and one for each typical mistake."""


def moved(parameters, element_size, window, set_to_none):
    size = parameters * element_size
    return (window - 1) * 3 * size if set_to_none else size + window * 3 * size


def with_none(first, each=3):
    """Right with zeros; with None the first backward costs ``first`` and each of the others ``each``."""

    def answer(parameters, element_size, window, set_to_none):
        if not set_to_none:
            return moved(parameters, element_size, window, set_to_none)
        return parameters * element_size * (first + each * (window - 1))

    return answer


RIGHT = (moved,)
WRONG = {
    "numbers": lambda parameters, element_size, window, set_to_none: moved(parameters, 1, window, set_to_none),
    "bits": lambda *given: 8 * moved(*given),
    "as-claimed": lambda parameters, size, window, none: parameters * size * window * (1 if none else 3),
    "no-fill": lambda parameters, size, window, none: parameters * size * 3 * (window - 1 if none else window),
    "first-written": with_none(1),
    "first-copied": with_none(2),
    "first-added": with_none(3),
    "one-read": lambda parameters, size, window, none: parameters * size * 2 * ((window - 1) if none else window + 0.5),
    "none-is-free": with_none(0, 0),
    "fill-each-time": lambda parameters, size, window, none: 0 if none else parameters * size * 4 * window,
    "no-window": lambda parameters, size, window, none: 0 if none else parameters * size * 4,
}
