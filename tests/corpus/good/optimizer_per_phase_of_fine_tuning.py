# Fine-tuning in two phases: Adam for the new head on a frozen backbone, then another optimizer with other groups for
# everything. The second one starts without history on purpose.
# source: docs.pytorch.org/tutorials/beginner/transfer_learning_tutorial.html
import torch
from torch import nn

torch.manual_seed(206)
backbone = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
head = nn.Linear(16, 3)
x = torch.randn(192, 12)
y = x[:, :3].argmax(1)


def fit(optimizer, epochs):
    for epoch in range(epochs):
        for batch in torch.randperm(192).split(24):
            loss = nn.functional.cross_entropy(head(backbone(x[batch])), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(type(optimizer).__name__, epoch, loss.item())


phases = [("head", 3), ("all", 5)]
for phase, epochs in phases:
    backbone.requires_grad_(phase == "all")
    if phase == "head":
        optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
    else:
        groups = [{"params": backbone.parameters(), "lr": 0.02}, {"params": head.parameters(), "lr": 0.05}]
        optimizer = torch.optim.SGD(groups, momentum=0.9, nesterov=True)
    fit(optimizer, epochs)
