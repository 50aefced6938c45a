# A diffusion-style denoiser whose train step clears the gradients only in the branch that does not use bfloat16.
# source: facebookresearch/nwm#16
# expect: missing-zero-grad
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Denoiser(nn.Module):
    def __init__(self, dim=12, hidden=32):
        super().__init__()
        self.time = nn.Embedding(10, hidden)
        self.inp = nn.Linear(dim, hidden)
        self.out = nn.Sequential(nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, dim))

    def forward(self, x, t):
        return self.out(self.inp(x) + self.time(t))


def train_step(model, opt, x0, bfloat_enable):
    t = torch.randint(0, 10, (x0.shape[0],))  # <- cause
    noise = torch.randn_like(x0)
    alpha = (1 - t / 10).unsqueeze(1)
    xt = alpha.sqrt() * x0 + (1 - alpha).sqrt() * noise
    with torch.autocast("cpu", enabled=bfloat_enable, dtype=torch.bfloat16):
        loss = F.mse_loss(model(xt, t).float(), noise)
    if not bfloat_enable:  # <- cause
        opt.zero_grad()  # <- cause
        loss.backward()
        opt.step()
    else:
        loss.backward()  # <- cause
        opt.step()  # <- missing-zero-grad, cause
    return loss.item()


model = Denoiser()
opt = torch.optim.AdamW(model.parameters(), lr=8e-4, weight_decay=0)
data = torch.randn(256, 12)
for step in range(24):
    idx = torch.randint(0, len(data), (16,))
    loss = train_step(model, opt, data[idx], bfloat_enable=True)
    if step % 8 == 0:
        print(f"(step={step:07d}) Train Loss: {loss:.4f}")
