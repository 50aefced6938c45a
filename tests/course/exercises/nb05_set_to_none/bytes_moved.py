"""A right answer to the exercise ``bytes_moved``."""


def moved(parameters, element_size, window, set_to_none):
    size = parameters * element_size
    return (window - 1) * 3 * size if set_to_none else size + window * 3 * size


RIGHT = (moved,)
