# Gradients are cleared in a hook after optimizer.step(), which does not run when the scaler skips that step.
# source: pytorch/pytorch#67590
# expect: skipped-step-keeps-gradients
import torch
from torch import nn, optim

torch.manual_seed(12)


def clear_after_step(optimizer, args, kwargs):
    optimizer.zero_grad(set_to_none=True)


class Denoiser(nn.Module):
    def __init__(self, dim=10):
        super().__init__()
        self.time = nn.Linear(1, 16)
        self.inp, self.out = nn.Linear(dim, 16), nn.Linear(16, dim)

    def forward(self, x, t):
        return self.out(torch.nn.functional.silu(self.inp(x) + self.time(t)))


model = Denoiser()
optimizer = optim.AdamW(model.parameters(), lr=2e-3)
optimizer.register_step_post_hook(clear_after_step)  # <- cause
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**21)
data = torch.randn(64, 10).cumsum(1) / 3

for step in range(24):
    x0 = data[torch.randint(64, (16,))]
    t, noise = torch.rand(16, 1), torch.randn(16, 10)
    noisy = (1 - t) * x0 + t * noise
    with torch.autocast("cpu", dtype=torch.float16):
        predicted = model(noisy, t)
    loss = nn.functional.mse_loss(predicted.float(), noise)
    scaler.scale(loss).backward()  # <- cause
    scaler.step(optimizer)  # <- skipped-step-keeps-gradients, cause
    scaler.update()  # <- cause
    if step % 6 == 0:
        print(f"step {step}: loss {loss.item():.4f}, loss scale {scaler.get_scale():.4g}")
