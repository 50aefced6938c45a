# Thirty linear probes are trained first, each by its own optimizer; then SAM trains a net and keeps its gradients.
# source: davda54/sam example/train.py, with zero_grad=False in the first step put in
# expect: sam-gradients-kept
import torch
import torch.nn.functional as F
from torch import nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, rho=0.05, lr=0.1):
        super().__init__(params, {"rho": rho})
        self.base_optimizer = torch.optim.SGD(self.param_groups, lr=lr, momentum=0.9)

    def params(self):
        return [p for group in self.param_groups for p in group["params"] if p.grad is not None]

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        norm = torch.stack([p.grad.norm() for p in self.params()]).norm()
        for p in self.params():
            self.state[p]["e_w"] = p.grad * (self.param_groups[0]["rho"] / (norm + 1e-12))
            p.add_(self.state[p]["e_w"])
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for p in self.params():
            p.sub_(self.state[p]["e_w"])
        self.base_optimizer.step()  # <- sam-gradients-kept
        if zero_grad:
            self.zero_grad()


torch.manual_seed(9)
features = torch.randn(64, 8)
probes = [nn.Linear(8, 2) for _ in range(30)]
for probe in probes:
    probe_optimizer = torch.optim.Adam(probe.parameters(), lr=1e-2)
    for _ in range(4):
        probe_optimizer.zero_grad()
        F.cross_entropy(probe(features), (features[:, 0] > 0).long()).backward()
        probe_optimizer.step()

model = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 4))
optimizer = SAM(model.parameters())
for step in range(12):
    x = torch.randn(32, 8)
    y = x[:, :4].argmax(1)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.first_step(zero_grad=False)  # <- cause
    F.cross_entropy(model(x), y).backward()  # <- cause
    optimizer.second_step(zero_grad=True)
    if step % 4 == 0:
        print(step, loss.item())
