# A regression whose predictions have shape (N, 1) and whose targets have shape (N,): the squared error by hand compares
# each prediction with all targets, without a warning.
# source: https://discuss.pytorch.org/t/target-size-torch-size-10-must-be-the-same-as-input-size/72354
# expect: loss-broadcasts
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(96, 3)
y = x @ torch.tensor([1.0, -2.0, 0.5])
model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(3):
    for start in range(0, 96, 16):
        pred = model(x[start : start + 16])
        loss = ((pred - y[start : start + 16]) ** 2).mean()  # <- loss-broadcasts, cause
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
