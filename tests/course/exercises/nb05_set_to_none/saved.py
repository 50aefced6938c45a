"""A right answer to the exercise ``saved``."""


def levels(activations, gradients):
    count = len(activations)
    return [sum(activations[:cut]) + sum(gradients[cut:]) for cut in range(count, -1, -1)]


def difference(activations, gradients):
    return sum(activations) + sum(gradients) - max(levels(activations, gradients))


RIGHT = (difference,)
