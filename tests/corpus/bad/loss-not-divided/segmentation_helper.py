# A U-Net-like model trained with a helper that yields when to update; the Dice loss is a mean and is not normalised.
# source: fredzzhang/atlas#26
# expect: loss-not-divided
# severity: hint (a sum over tasks looks the same, and a smaller lr makes up for it)
import torch
from torch import nn

torch.manual_seed(3)
accumulation = 4
down = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
up = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(8, 1, 3, padding=1), nn.Sigmoid())
net = nn.Sequential(down, up)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
images = torch.rand(48, 1, 8, 8)
masks = (images > 0.5).float()


def dice_loss(p, t):
    inter = (p * t).sum((1, 2, 3))
    return (1 - (2 * inter + 1) / (p.sum((1, 2, 3)) + t.sum((1, 2, 3)) + 1)).mean()


def windows(n, size):
    last = n // size
    for k in range(last):
        yield slice(k * size, (k + 1) * size), (k + 1) % accumulation == 0


for epoch in range(4):
    total = 0.0
    for where, update in windows(len(images), 4):
        loss = dice_loss(net(images[where]), masks[where])  # <- cause
        loss.backward()  # <- loss-not-divided, cause
        total += float(loss.detach())
        if update:
            opt.step()
            net.zero_grad(set_to_none=False)
    print(f"epoch {epoch} dice loss {total / 12:.4f}")
