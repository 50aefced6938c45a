# A probe keeps a dictionary with a list for each layer; its hooks are partials of a method, and nothing is detached.
# source: none (a common mistake, written small)
# expect: graph-retained-memory-leak
from functools import partial

import torch
from torch import nn


class Probe:
    def __init__(self, model, names):
        self.taken = {name: [] for name in names}
        for name in names:
            model.get_submodule(name).register_forward_hook(partial(self.take, name))  # <- cause

    def take(self, name, module, args, output):
        self.taken[name].append(output)  # <- graph-retained-memory-leak, cause


def main():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
    probe = Probe(net, ["0", "2"])
    optim = torch.optim.SGD(net.parameters(), lr=0.01)
    for x in torch.randn(100, 8, 5):
        optim.zero_grad()
        nn.functional.mse_loss(net(x), x.std(1, keepdim=True)).backward()
        optim.step()
    return {name: len(kept) for name, kept in probe.taken.items()}


print(main())
