# Schedule-free SGD: the optimizer has a train() and an eval() of its own, which swap the weights between the point
# where gradients are taken and the average; BatchNorm is refreshed in train mode under no_grad before the evaluation.
# source: facebookresearch/schedule_free#60, facebookresearch/schedule_free schedulefree/sgd_schedulefree.py
import torch
from torch import nn


class ScheduleFreeSGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1, beta=0.9):
        super().__init__(params, {"lr": lr, "beta": beta, "k": 0, "train_mode": True})

    @torch.no_grad()
    def _move(self, train_mode):
        for group in self.param_groups:
            if group["train_mode"] != train_mode:
                weight = 1 - group["beta"] if train_mode else 1 - 1 / group["beta"]
                for p in group["params"]:
                    if "z" in self.state[p]:
                        p.lerp_(self.state[p]["z"], weight)
                group["train_mode"] = train_mode

    def train(self):
        self._move(True)

    def eval(self):
        self._move(False)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            group["k"] += 1
            share, beta, lr = 1 / group["k"], group["beta"], group["lr"]
            for p in group["params"]:
                z = self.state[p].setdefault("z", p.clone())
                p.lerp_(z, share)
                p.add_(p.grad, alpha=lr * (beta * (1 - share) - 1))
                z.sub_(p.grad, alpha=lr)


torch.manual_seed(235)
x = torch.randn(360, 6)
y = (x[:, 0] > x[:, 1]).long()
batches = list(zip(x[:288].split(24), y[:288].split(24), strict=True))
model = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
optimizer = ScheduleFreeSGD(model.parameters(), lr=0.5)
for epoch in range(5):
    model.train()
    optimizer.train()
    for inputs, labels in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    optimizer.eval()
    with torch.no_grad():
        for inputs, _ in batches:
            model(inputs)
    model.eval()
    with torch.no_grad():
        accuracy = (model(x[288:]).argmax(1) == y[288:]).float().mean().item()
    print(epoch, f"loss {loss.item():.4f} accuracy of the average {accuracy:.3f}")
