# Heads take turns: each step trains the trunk with one head only, and the gradients of the others stay None; all of
# them are in one optimizer from the start.
# source: namisan/mt-dnn mt_dnn/model.py (one task per mini-batch)
import itertools

import torch
from torch import nn

torch.manual_seed(256)
trunk = nn.Sequential(nn.Linear(7, 40), nn.ReLU())
heads = nn.ModuleDict({"sign": nn.Linear(40, 1), "sum": nn.Linear(40, 1), "largest": nn.Linear(40, 7)})
optimizer = torch.optim.Adamax([*trunk.parameters(), *heads.parameters()], lr=1e-2)
history = {name: [] for name in heads}
for _, name in zip(range(150), itertools.cycle(heads), strict=False):
    x = torch.randn(32, 7)
    output = heads[name](trunk(x))
    if name == "sign":
        loss = nn.functional.binary_cross_entropy_with_logits(output, (x[:, :1] > 0).float())
    elif name == "sum":
        loss = nn.functional.mse_loss(output, x.sum(1, keepdim=True))
    else:
        loss = nn.functional.cross_entropy(output, x.argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history[name].append(loss.item())
for name, values in history.items():
    print(name, f"first {values[0]:.3f} last {values[-1]:.3f}")
