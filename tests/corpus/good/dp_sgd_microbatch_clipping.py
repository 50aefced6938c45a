# DP-SGD: each sample's gradient is clipped and added to an accumulator; between samples the optimizer's gradients are
# cleared on purpose; noise is added to the sum, which is written back into .grad before the step.
# source: ChrisWaites/pyvacy pyvacy/optimizers/dp_optimizer.py
import torch
from torch import nn
from torch.optim import Adam


class DPAdam(Adam):
    def __init__(self, params, l2_norm_clip, noise_multiplier, minibatch_size, **kw):
        super().__init__(params, **kw)
        self.clip, self.noise, self.size = l2_norm_clip, noise_multiplier, minibatch_size
        for group in self.param_groups:
            group["accum_grads"] = [torch.zeros_like(p) for p in group["params"]]

    def zero_microbatch_grad(self):
        super().zero_grad()

    def microbatch_step(self):
        total = sum(p.grad.pow(2).sum().item() for g in self.param_groups for p in g["params"]) ** 0.5
        factor = min(self.clip / (total + 1e-6), 1.0)
        for group in self.param_groups:
            for p, accum in zip(group["params"], group["accum_grads"], strict=True):
                accum.add_(p.grad.mul(factor))

    def zero_grad(self, set_to_none=True):
        for group in self.param_groups:
            for accum in group["accum_grads"]:
                accum.zero_()

    def step(self):
        for group in self.param_groups:
            for p, accum in zip(group["params"], group["accum_grads"], strict=True):
                p.grad = accum.clone()
                p.grad.add_(self.clip * self.noise * torch.randn_like(p.grad))
                p.grad.mul_(1 / self.size)
        super().step()


torch.manual_seed(31)
model = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1))
optimizer = DPAdam(model.parameters(), l2_norm_clip=1.0, noise_multiplier=0.3, minibatch_size=8, lr=2e-2)
loss_function = nn.BCEWithLogitsLoss()
for step in range(15):
    x_minibatch = torch.randn(8, 5)
    y_minibatch = (x_minibatch[:, :2].sum(1, keepdim=True) > 0).float()
    optimizer.zero_grad()
    for x, y in zip(x_minibatch.split(1), y_minibatch.split(1), strict=True):
        optimizer.zero_microbatch_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.microbatch_step()
    optimizer.step()
    if step % 7 == 0:
        with torch.no_grad():
            print(step, loss_function(model(x_minibatch), y_minibatch).item())
