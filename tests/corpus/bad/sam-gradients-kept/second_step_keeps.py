# Sharpness-aware minimisation whose second step is told not to clear, so the next climb follows the old gradients, too.
# source: davda54/sam README and sam.py, with zero_grad=False in the second step put in
# expect: sam-gradients-kept
import torch
from torch import nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        params = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        grad_norm = torch.stack([p.grad.norm(p=2) for p in params]).norm(p=2)
        for group in self.param_groups:
            scale = group["rho"] / (grad_norm + 1e-12)
            for p in group["params"]:
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * scale)
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()  # <- sam-gradients-kept
        if zero_grad:
            self.zero_grad()


torch.manual_seed(7)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.1, lr=0.05, momentum=0.9)
inputs = torch.randn(160, 10)
targets = inputs[:, :3].argmax(1)
for epoch in range(2):
    for x, y in zip(inputs.split(16), targets.split(16), strict=True):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # <- cause
        optimizer.first_step(zero_grad=True)

        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.second_step(zero_grad=False)  # <- cause
    print(f"epoch {epoch} loss {loss.item():.4f}")
