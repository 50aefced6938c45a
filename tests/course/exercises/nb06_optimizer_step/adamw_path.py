"""Right answers to the exercise ``adamw_path``."""

import torch


def written(**changes):
    """AdamW, with lines replaced by others: as learners would write them."""
    lines = {
        "gap": "path.append(w); continue",
        "none": "g is None",
        "decay": "w -= lr * weight_decay * w",
        "first": "m / (1 - beta1**t)",
        "second": "v / (1 - beta2**t)",
    } | changes
    text = f"""
def answer(w, grads, lr, weight_decay, beta1=0.9, beta2=0.999, eps=1e-8):
    m, v, t, path = 0, 0, 0, []
    for g in grads:
        if {lines["none"]}:
            {lines["gap"]}
        g = 0 if g is None else g
        t += 1
        {lines["decay"]}
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        w -= lr * ({lines["first"]}) / (({lines["second"]}) ** 0.5 + eps)
        path.append(w)
    return path
"""
    names = {}
    exec(text, names)
    return names["answer"]


def with_torch(w, grads, lr, weight_decay, beta1=0.9, beta2=0.999, eps=1e-8):
    weight, path = torch.tensor(w), []
    optimizer = torch.optim.AdamW([weight], lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay)
    for g in grads:
        weight.grad = None if g is None else torch.tensor(g)
        optimizer.step()
        path.append(weight.clone())
    return torch.stack(path)


RIGHT = (written(), written(decay="w = w * (1 - lr * weight_decay)"), with_torch)
