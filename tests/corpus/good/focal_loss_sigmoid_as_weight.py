# A focal loss: binary_cross_entropy_with_logits gets the logits; their sigmoid is used beside it, as a weight on each
# element and for the metric.
# source: pytorch/vision torchvision/ops/focal_loss.py
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(216)
x = torch.randn(300, 2, 6)
objects = (x[:, 0] > 1.3).float()
detector = nn.Sequential(nn.Conv1d(2, 16, 3, padding=1), nn.ReLU(), nn.Conv1d(16, 1, 1))
optimizer = torch.optim.Adam(detector.parameters(), lr=1e-2)


def focal_loss(inputs, targets, alpha=0.75, gamma=2.0):
    p = torch.sigmoid(inputs)
    ce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    p_t = p * targets + (1 - p) * (1 - targets)
    alpha_t = alpha * targets + (1 - alpha) * (1 - targets)
    return (alpha_t * (1 - p_t) ** gamma * ce).sum() / targets.sum().clamp(min=1)


for epoch in range(5):
    hits = torch.zeros(())
    for batch in torch.randperm(300).split(30):
        logits = detector(x[batch]).squeeze(1)
        loss = focal_loss(logits, objects[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits += ((logits.sigmoid() > 0.5) == objects[batch].bool()).float().mean().detach()
    print(epoch, f"loss {loss.item():.4f} accuracy {hits.item() / 10:.3f}")
