# A hook puts what two named layers return into a dictionary of lists at the top of the script, in a loop in a function.
# source: none (a common mistake, written small)
# expect: graph-retained-memory-leak
import torch
from torch import nn

kept = {"embed": [], "mix": []}


def tap(model, name):
    def hook(module, args, output):
        kept[name].append(output)  # <- graph-retained-memory-leak, cause

    getattr(model, name).register_forward_hook(hook)  # <- cause


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.mix = nn.Embedding(10, 6), nn.Linear(6, 10)

    def forward(self, ids):
        return self.mix(self.embed(ids))


def fit(net, batches):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for ids in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(ids), (ids * 3) % 10).backward()
        optimizer.step()


torch.manual_seed(4)
net = Net()
for name in kept:
    tap(net, name)
fit(net, torch.randint(0, 10, (150, 16)))
print({name: len(outputs) for name, outputs in kept.items()})
