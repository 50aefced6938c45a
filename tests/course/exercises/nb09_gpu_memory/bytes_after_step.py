"""Right answers to the exercise ``bytes_after_step``."""


def counted(parameters, optimizer):
    return 4 * parameters * {"sgd": 2, "momentum": 3, "adamw": 4}[optimizer]


def added(parameters, optimizer):
    weights = gradients = 4 * parameters
    state = 0
    if optimizer == "momentum":
        state = 4 * parameters
    elif optimizer == "adamw":
        state = 8 * parameters
    return weights + gradients + state


RIGHT = (counted, added)
