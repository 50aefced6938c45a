"""Right answers to the exercises of notebook 12, written another way than the solutions."""

import torch


def with_a_set(facts):
    seen = set(facts.values()) - {None}
    if seen == {True, False}:
        return "depends"
    return {True: "holds", False: "does not hold"}[seen.pop()] if seen else "not judged"


def short(xs, divide):
    return (len(xs) if divide else 1) / sum(x**2 for x in xs)


def side_by_side(build, make, batches):
    models = build(), build()
    for model, set_to_none in zip(models, (True, False), strict=True):
        optimizer = make(model.parameters())
        for batch in batches:
            optimizer.zero_grad(set_to_none=set_to_none)
            model.loss(batch).backward()
            optimizer.step()
    return all(torch.allclose(*pair) for pair in zip(*(model.parameters() for model in models), strict=True))


RIGHT = {"verdict_of": [with_a_set], "flips_at": [short], "same_effect": [side_by_side]}
