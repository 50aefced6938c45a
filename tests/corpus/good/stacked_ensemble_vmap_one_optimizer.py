# Five networks trained at once: their weights are stacked by torch.func, one forward runs all of them by vmap, the
# losses are summed, and one optimizer holds the stacked tensors; the modules themselves are in none.
# source: pytorch/tutorials intermediate_source/ensembling.py
import copy

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

torch.manual_seed(249)
members = [nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1)) for _ in range(5)]
params, buffers = stack_module_state(members)
skeleton = copy.deepcopy(members[0]).to("meta")
optimizer = torch.optim.Adam(params.values(), lr=2e-2, foreach=False)


def run(p, b, x):
    return functional_call(skeleton, (p, b), (x,))


x = torch.randn(160, 3)
y = x[:, :1].sin() - x[:, 2:]
for epoch in range(12):
    for rows in torch.randperm(160).split(32):
        predictions = vmap(run, in_dims=(0, 0, None), randomness="different")(params, buffers, x[rows])
        loss = (predictions - y[rows]).square().mean((1, 2)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 0:
        print(epoch, f"mean loss {loss.item() / 5:.4f} spread {predictions.std(0).mean().item():.4f}")
