# The lottery ticket: train, prune the smallest weights, rewind the rest to where they started, train again. The same
# model gets a new optimizer in every round, since the momentum of the last one belongs to weights that are gone.
# source: rahulvigneswaran/Lottery-Ticket-Hypothesis-in-Pytorch main.py
import copy

import torch
from torch import nn

torch.manual_seed(208)
model = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 4))
initial = copy.deepcopy(model.state_dict())
masks = {name: torch.ones_like(p) for name, p in model.named_parameters() if name.endswith("weight")}
x = torch.randn(256, 10)
y = x[:, :4].argmax(1)

for level in range(4):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)
    for _epoch in range(4):
        for batch in torch.randperm(256).split(32):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
            loss.backward()
            for name, p in model.named_parameters():
                if name in masks:
                    p.grad.mul_(masks[name])
            optimizer.step()
            with torch.no_grad():
                for name, mask in masks.items():
                    model.get_parameter(name).mul_(mask)
    left = sum(m.sum().item() for m in masks.values()) / sum(m.numel() for m in masks.values())
    print(f"round {level}: {left:.0%} of the weights, loss {loss.item():.4f}")
    for name, mask in masks.items():
        weight = model.get_parameter(name).detach().abs()
        mask *= weight > weight[mask > 0].quantile(0.3)
    model.load_state_dict(initial)
    with torch.no_grad():
        for name, mask in masks.items():
            model.get_parameter(name).mul_(mask)
