"""Right answers to the exercises of notebook 05, written another way than the solutions."""

import torch


def by_torch(model):
    return torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1e9)


def added_up(parameters, element_size, window, set_to_none):
    moved = 0 if set_to_none else 1
    for backward in range(window):
        moved += 0 if set_to_none and backward == 0 else 3
    return moved * parameters * element_size


def largest_level(activations, gradients):
    count = len(activations)
    levels = [sum(activations[:cut]) + sum(gradients[cut:]) for cut in range(count, -1, -1)]
    return sum(activations) + sum(gradients) - max(levels)


RIGHT = {"gradient_norm": [by_torch], "bytes_moved": [added_up], "saved": [largest_level]}
