# Sharpness-aware minimisation: two forward and backward passes for each update; the gradient of the first is only
# used to climb, and is cleared; BatchNorm's statistics run in the first pass only.
# source: davda54/sam sam.py and example/train.py
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, {"rho": rho, **kwargs})
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self):
        grads = [p.grad for g in self.param_groups for p in g["params"] if p.grad is not None]
        norm = torch.stack([g.norm() for g in grads]).norm()
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * group["rho"] / (norm + 1e-12))
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        self.zero_grad()


def running_stats(model, on):
    for m in model.modules():
        if isinstance(m, _BatchNorm):
            m.momentum = 0.1 if on else 0


torch.manual_seed(23)
model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.1, momentum=0.9)
smooth = nn.CrossEntropyLoss(label_smoothing=0.1)
for step in range(40):
    inputs = torch.randn(32, 8)
    targets = inputs[:, :4].argmax(1)
    running_stats(model, True)
    predictions = model(inputs)
    loss = smooth(predictions, targets)
    loss.backward()
    optimizer.first_step()
    running_stats(model, False)
    smooth(model(inputs), targets).backward()
    optimizer.second_step()
    if step % 10 == 0:
        print(step, loss.item())
