# An L1 penalty is summed up with .item(), so it is a number by the time it is added to the loss and shrinks no weight.
# source: https://discuss.pytorch.org/t/l1-regularization-for-a-single-matrix/28088
# expect: loss-term-detached
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(96, 12)
y = (x[:, :2].sum(1) > 0).long()
model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for start in range(0, 96, 16):
        logits = model(x[start : start + 16])
        data_loss = F.cross_entropy(logits, y[start : start + 16])
        penalty = 0.0
        for p in model.parameters():
            penalty += p.abs().sum().item()  # <- cause
        loss = data_loss + 1e-3 * penalty
        optimizer.zero_grad()
        loss.backward()  # <- loss-term-detached
        optimizer.step()
    print(epoch, loss.item())
