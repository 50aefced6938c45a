"""Answers to the exercise ``same_effect``: right ones, and one for each typical mistake."""

import torch


def end(model, optimizer, batches, set_to_none):
    for batch in batches:
        optimizer.zero_grad(set_to_none=set_to_none)
        model.loss(batch).backward()
        optimizer.step()
    return torch.nn.utils.parameters_to_vector(model.parameters())


def two_runs(build, make, batches):
    ends = []
    for set_to_none in (True, False):
        model = build()
        ends.append(end(model, make(model.parameters()), batches, set_to_none))
    return torch.equal(*ends)


def one_by_one(build, make, batches):
    one, other = build(), build()
    end(one, make(one.parameters()), batches, True)
    end(other, make(other.parameters()), batches, False)
    return all(torch.allclose(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def first_layer(build, make, batches):
    one, other = build(), build()
    end(one, make(one.parameters()), batches[:2], True)
    end(other, make(other.parameters()), batches[:2], False)
    return torch.equal(one.body.weight, other.body.weight)


def one_model(build, make, batches):
    model = build()
    first = end(model, make(model.parameters()), batches, True).detach().clone()
    return torch.equal(first, end(model, make(model.parameters()), batches, False))


def any_left_out(build, make, batches):
    model = build()
    for batch in batches:
        model.zero_grad()
        model.loss(batch).backward()
        if any(p.grad is None for p in model.parameters()):
            return False
    return True


def is_plain(build, make, batches):
    optimizer = make(build().parameters())
    return isinstance(optimizer, torch.optim.SGD) and not any(
        optimizer.param_groups[0][setting] for setting in ("momentum", "weight_decay")
    )


RIGHT = (two_runs, one_by_one)
WRONG = {
    "always-same": first_layer,
    "always-different": one_model,
    "upside-down": lambda *all: not two_runs(*all),
    "unused-is-enough": any_left_out,
    "only-the-optimizer": is_plain,
}
