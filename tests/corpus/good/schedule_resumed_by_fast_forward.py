# Resuming without the scheduler's state: it is stepped up to the starting epoch before the first optimizer step
# (PyTorch warns about the order, rightly ignored here), and a loader is run through to the same place.
# source: huggingface/pytorch-image-models train.py (lr_scheduler.step(start_epoch))
import tempfile
import warnings
from pathlib import Path

import torch
from torch import nn, optim

warnings.filterwarnings("ignore", message="Detected call of `lr_scheduler.step\\(\\)`")


def build():
    torch.manual_seed(84)
    model = nn.Sequential(nn.Linear(4, 16), nn.CELU(), nn.Linear(16, 1))
    optimizer = optim.Adam(model.parameters(), lr=2e-2)
    return model, optimizer, optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 4], gamma=0.3)


def run(model, optimizer, scheduler, start_epoch, end_epoch):
    generator = torch.Generator().manual_seed(0)
    for epoch in range(end_epoch):
        batches = torch.randn(6, 32, 4, generator=generator)
        if epoch < start_epoch:
            continue
        for batch in batches:
            loss = (model(batch) - batch.norm(dim=1, keepdim=True)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        print(epoch, f"{loss.item():.4f}", scheduler.get_last_lr())


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "checkpoint.pt")
    model, optimizer, scheduler = build()
    run(model, optimizer, scheduler, 0, 3)
    torch.save({"model": model.state_dict(), "epoch": 3}, path)

    checkpoint = torch.load(path)
    model, optimizer, scheduler = build()
    model.load_state_dict(checkpoint["model"])
    for _ in range(checkpoint["epoch"]):
        scheduler.step()
    run(model, optimizer, scheduler, checkpoint["epoch"], 6)
