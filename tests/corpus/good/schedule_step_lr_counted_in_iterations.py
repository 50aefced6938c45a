# Milestones are counted in iterations, not in epochs: StepLR steps after every batch, and its step_size is several
# epochs long.
# source: cszn/KAIR#101
import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

torch.manual_seed(201)
clean = torch.rand(96, 1, 8, 8)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = StepLR(optimizer, step_size=40, gamma=0.5)
current_step = 0
for epoch in range(10):
    for sharp in clean[torch.randperm(96)].split(8):
        current_step += 1
        noisy = sharp + 0.2 * torch.randn_like(sharp)
        loss = nn.functional.l1_loss(model(noisy), sharp)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(f"epoch {epoch} step {current_step} lr {scheduler.get_last_lr()[0]:.1e} loss {loss.item():.4f}")
