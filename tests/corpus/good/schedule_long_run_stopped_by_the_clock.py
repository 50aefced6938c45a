# A OneCycle schedule for a long run, and a budget that ends the job in the middle of it: the scheduler steps after
# every batch, but only two fifths of its steps are ever taken; a checkpoint holds its state for the next job.
# source: docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.OneCycleLR.html, crowsonkb/k-diffusion#50
import io

import torch
from torch import nn

torch.manual_seed(205)
total_steps, budget = 250, 50
model = nn.Sequential(nn.Linear(5, 32), nn.GELU(), nn.Linear(32, 1))


def job(resume=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[1e-2], total_steps=total_steps)
    if resume is not None:
        resume.seek(0)
        saved = torch.load(resume)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
    for _ in range(budget):
        x = torch.randn(32, 5)
        loss = nn.functional.mse_loss(model(x), x.abs().sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(f"step {scheduler.last_epoch} of {total_steps} loss {loss.item():.3f} lr {scheduler.get_last_lr()[0]:.4f}")
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    checkpoint = io.BytesIO()
    torch.save(state, checkpoint)
    return checkpoint


job(resume=job())
