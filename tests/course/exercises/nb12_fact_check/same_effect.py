"""Right answers to the exercise ``same_effect``."""

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


RIGHT = (two_runs, one_by_one)
