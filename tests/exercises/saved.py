"""Answers to the exercise ``saved``: the right one, and one for each typical mistake."""


def levels(activations, gradients):
    count = len(activations)
    return [sum(activations[:cut]) + sum(gradients[cut:]) for cut in range(count, -1, -1)]


def difference(activations, gradients):
    return sum(activations) + sum(gradients) - max(levels(activations, gradients))


RIGHT = (difference,)
WRONG = {
    "all-gradients": lambda activations, gradients: sum(gradients),
    "nothing": lambda activations, gradients: 0,
    "two-ends": lambda activations, gradients: min(sum(activations), sum(gradients)),
    "other-way": lambda activations, gradients: difference(activations[::-1], gradients[::-1]),
    "peak-with-none": lambda activations, gradients: max(levels(activations, gradients)),
    "peak-with-zeros": lambda activations, gradients: sum(activations) + sum(gradients),
    "not-before": lambda a, g: sum(a) + sum(g) - max(levels(a, g)[1:]),
    "not-after": lambda a, g: sum(a) + sum(g) - max(levels(a, g)[:-1]),
    "each-by-itself": lambda a, g: sum(min(pair) for pair in zip(a, g, strict=True)),
    "difference-of-sums": lambda a, g: sum(a) - sum(g),
}
