"""Right answers to the exercises of notebook 09, written another way than the solutions."""

import torch
from torch.nn.functional import cross_entropy


def added(parameters, optimizer):
    weights = gradients = 4 * parameters
    state = 0
    if optimizer == "momentum":
        state = 4 * parameters
    elif optimizer == "adamw":
        state = 8 * parameters
    return weights + gradients + state


@torch.inference_mode()
def inference(model, batches):
    model.eval()
    return sum(cross_entropy(model(x), y).item() for x, y in batches) / len(batches)


def three_points(peak_of, budget):
    low, high = peak_of(100), peak_of(300)
    rows = 300 + (budget - high) * 200 // (high - low)
    return rows if peak_of(rows) <= budget else rows - 1


RIGHT = {"bytes_after_step": [added], "evaluate": [inference], "largest_batch": [three_points]}
