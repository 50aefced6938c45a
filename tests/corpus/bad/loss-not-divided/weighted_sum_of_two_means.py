# Two heads, two mean losses with weights, in windows of six, by functions: the sum goes back as it is.
# source: none (a common mistake, written small)
# expect: loss-not-divided
# severity: hint (a smaller learning rate makes up for it)
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1)
trunk, price, kind = nn.Linear(7, 20), nn.Linear(20, 1), nn.Linear(20, 4)
everything = nn.ModuleList([trunk, price, kind])
optimizer = torch.optim.Adam(everything.parameters(), lr=1e-3)
weights = {"price": 0.7, "kind": 0.3}


def losses(x):
    h = torch.tanh(trunk(x))
    return {
        "price": F.smooth_l1_loss(price(h), x.sum(1, keepdim=True)),
        "kind": F.cross_entropy(kind(h), x[:, :4].argmax(1)),
    }


def window(micro_batches):
    everything.zero_grad()
    for x in micro_batches:
        both = losses(x)
        total = weights["price"] * both["price"] + weights["kind"] * both["kind"]  # <- cause
        total.backward()  # <- loss-not-divided, cause
    optimizer.step()


for micro_batches in torch.randn(10, 6, 8, 7):
    window(micro_batches)
