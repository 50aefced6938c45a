"""Answers to the exercise ``bytes_after_step``: right ones, and one for each typical mistake."""


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


def numbers(parameters, optimizer):
    return counted(parameters, optimizer) // 4


def half(parameters, optimizer):
    return counted(parameters, optimizer) // 2


def bits(parameters, optimizer):
    return counted(parameters, optimizer) * 8


def without_gradients(parameters, optimizer):
    return 4 * parameters + {"sgd": 0, "momentum": 4, "adamw": 8}[optimizer] * parameters


def without_state(parameters, optimizer):
    return 8 * parameters


def one_average(parameters, optimizer):
    return 8 * parameters if optimizer == "sgd" else 12 * parameters


def two_buffers(parameters, optimizer):
    return 8 * parameters if optimizer == "sgd" else 16 * parameters


def sgd_keeps(parameters, optimizer):
    return 16 * parameters if optimizer == "adamw" else 12 * parameters


RIGHT = (counted, added)
WRONG = {
    "numbers": numbers,
    "two-bytes": half,
    "bits": bits,
    "no-gradients": without_gradients,
    "no-state": without_state,
    "one-average": one_average,
    "two-buffers": two_buffers,
    "sgd-keeps": sgd_keeps,
}
