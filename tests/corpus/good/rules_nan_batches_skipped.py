# Some batches have a NaN in them: their losses are skipped before backward() or before step(), and one that no element
# is left for has no gradient at all.
# source: https://discuss.pytorch.org/t/skipping-a-batch-with-nan-loss/109371
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(96, 4)
x[20] = float("nan")
y = x.nan_to_num().sum(1, keepdim=True)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(4):
    for xb, yb in zip(x.split(8), y.split(8), strict=True):
        loss = F.mse_loss(model(xb), yb)
        if epoch % 2 and not math.isfinite(loss.item()):
            continue
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if torch.isfinite(norm):
            optimizer.step()
    kept = yb.abs() > 1e9
    optimizer.zero_grad()
    F.mse_loss(model(xb)[kept], yb[kept]).backward()
    optimizer.step()
    print(epoch, model.weight.sum().item())
