# Sharpness-aware minimization: the loop asks first_step() to keep the gradients, hoping to accumulate over batches.
# source: davda54/sam#62
# expect: sam-gradients-kept
import torch
import torch.nn.functional as F
from torch import nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        grads = [p.grad.norm() for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack(grads).norm()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.state[p]["old_p"] = p.clone()
                    p.add_(p.grad * (group["rho"] / (norm + 1e-12)))
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.copy_(self.state[p]["old_p"])
        self.base_optimizer.step()  # <- sam-gradients-kept
        if zero_grad:
            self.zero_grad()


torch.manual_seed(42)
model = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 4))
optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.1, momentum=0.9)
images = torch.randn(64, 1, 8, 8)
targets = torch.randint(0, 4, (64,))
images += targets.view(-1, 1, 1, 1).float()
for epoch in range(3):
    model.train()
    for inputs, labels in zip(images.split(16), targets.split(16), strict=True):
        loss = F.cross_entropy(model(inputs), labels, label_smoothing=0.1)
        loss.backward()
        optimizer.first_step(zero_grad=False)  # <- cause

        F.cross_entropy(model(inputs), labels, label_smoothing=0.1).backward()
        optimizer.second_step(zero_grad=True)
    print(f"epoch {epoch}: loss {loss.item():.4f}")
