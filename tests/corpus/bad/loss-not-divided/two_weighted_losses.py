# A segmentation loss of two means with weights that add up to 1, summed over the micro-batches of a window.
# source: written for the rule: a weighted mean of means, which nothing divides
# expect: loss-not-divided
# severity: hint (a smaller learning rate makes up for it)
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Conv2d(1, 1, 3, padding=1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
bce = nn.BCEWithLogitsLoss()
dice_weight, accumulate = 0.3, 4


def criterion(logits, mask):
    p, m = logits.sigmoid().flatten(1), mask.flatten(1)
    dice = 1 - (2 * (p * m).sum(1) + 1) / (p.sum(1) + m.sum(1) + 1)
    return (1 - dice_weight) * bce(logits, mask) + dice_weight * dice.mean()


for i in range(1, 49):
    image = torch.randn(6, 1, 8, 8)
    loss = criterion(net(image), (image > 0.5).float())  # <- cause
    loss.backward()  # <- loss-not-divided, cause
    if i % accumulate == 0:
        optimizer.step()
        optimizer.zero_grad()
print(f"loss {loss.item():.4f}")
