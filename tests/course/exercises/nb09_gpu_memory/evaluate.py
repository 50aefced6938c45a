"""Right answers to the exercise ``evaluate``."""

import torch
from torch.nn.functional import cross_entropy


def no_grad(model, batches):
    total = 0
    with torch.no_grad():
        for x, y in batches:
            total = total + cross_entropy(model(x), y)
    return total / len(batches)


@torch.inference_mode()
def inference(model, batches):
    model.eval()
    return sum(cross_entropy(model(x), y).item() for x, y in batches) / len(batches)


RIGHT = (no_grad, inference)
