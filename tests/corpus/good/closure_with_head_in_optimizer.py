# A training step runs as a closure; only the head is in the optimizer, and the backbone, which requires gradients too,
# collects them unused.
# source: Lightning-AI/pytorch-lightning (its loop calls optimizer.step(closure)), transfer learning example
import torch
from torch import nn

torch.manual_seed(65)
backbone, head = nn.Sequential(nn.Linear(6, 12), nn.ReLU()), nn.Linear(12, 3)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)


def training_step(x):
    loss = nn.functional.cross_entropy(head(backbone(x)), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    return loss


for i in range(16):
    x = torch.randn(20, 6)
    loss = optimizer.step(lambda x=x: training_step(x))
    print(i, loss.item())
