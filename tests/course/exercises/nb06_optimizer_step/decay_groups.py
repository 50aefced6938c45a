"""Right answers to the exercise ``decay_groups``."""

from torch import nn


def by_dimension(model, weight_decay):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def spared_first(model, weight_decay):
    groups = [{"params": [], "weight_decay": 0}, {"params": [], "weight_decay": weight_decay}]
    for p in model.parameters():
        groups[p.ndim > 1]["params"].append(p)
    return groups


def by_layer(model, weight_decay):
    matrices = {layer.weight for layer in model.modules() if isinstance(layer, nn.Linear)}
    others = set(model.parameters()) - matrices
    return ({"params": matrices, "weight_decay": weight_decay}, {"params": (p for p in others), "weight_decay": 0.0})


RIGHT = (by_dimension, spared_first, by_layer)
