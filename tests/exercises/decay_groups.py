"""Answers to the exercise ``decay_groups``: right ones, and one for each typical mistake."""

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


def by_name(model, weight_decay):
    decayed, spared = [], []
    for name, p in model.named_parameters():
        (spared if name.endswith("bias") else decayed).append(p)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": spared, "weight_decay": 0.0}]


def left_out(model, weight_decay):
    return [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": weight_decay}]


def unset(model, weight_decay):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    return [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": [p for p in model.parameters() if p.dim() < 2]},
    ]


def swapped(model, weight_decay):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    return [{"params": matrices, "weight_decay": 0.0}, {"params": others, "weight_decay": weight_decay}]


def everything(model, weight_decay):
    return [{"params": model.parameters(), "weight_decay": weight_decay}]


RIGHT = (by_dimension, spared_first, by_layer)
WRONG = {
    "by-name": by_name,
    "left-out": left_out,
    "default-decay": unset,
    "swapped": swapped,
    "all": everything,
}
