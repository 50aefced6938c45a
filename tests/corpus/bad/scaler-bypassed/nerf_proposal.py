# A NeRF-like fit that scales the loss by 1024 and then calls optimizer.step() directly: gradients 1024 times too large.
# source: nerfstudio-project/nerfacc#307
# expect: scaler-bypassed
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
max_steps = 16
freqs = 2.0 ** torch.arange(4)
radiance_field = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3), nn.Sigmoid())
optimizer = torch.optim.Adam(radiance_field.parameters(), lr=1e-3, eps=1e-15)
grad_scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)


def encode(xy):
    angles = (xy[:, :, None] * freqs).flatten(1)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


for step in range(max_steps + 1):
    rays = torch.rand(64, 2)
    pixels = torch.stack([rays[:, 0], rays[:, 1], rays.prod(1)], dim=1)
    rgb = radiance_field(encode(rays))
    loss = F.smooth_l1_loss(rgb, pixels)
    optimizer.zero_grad()
    # do not unscale it because we are using Adam.
    grad_scaler.scale(loss).backward()
    optimizer.step()  # <- scaler-bypassed, cause
    if step % 8 == 0:
        print(f"step={step} | loss={loss.item():.5f}")
