# A gate with sigmoid inside the net, logits at its end, and a focal weight made of the probabilities: sigmoid is used
# twice, and never before the loss with logits.
# source: https://pytorch.org/vision/stable/generated/torchvision.ops.sigmoid_focal_loss.html
import torch
import torch.nn.functional as F
from torch import nn


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.value, self.gate, self.out = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 1)

    def forward(self, x):
        return self.out(self.value(x) * torch.sigmoid(self.gate(x))).squeeze(1)


torch.manual_seed(0)
x = torch.randn(96, 8)
y = (x[:, 0] > 0).float()
model = Gated()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    for start in range(0, 96, 16):
        logits, target = model(x[start : start + 16]), y[start : start + 16]
        p = torch.sigmoid(logits)
        weight = (p * (1 - target) + (1 - p) * target) ** 2
        loss = (weight * F.binary_cross_entropy_with_logits(logits, target, reduction="none")).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
