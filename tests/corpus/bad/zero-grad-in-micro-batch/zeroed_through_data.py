# Old code clears through .data, which no version tells of, and does it for every micro-batch instead of once a window.
# source: pytorch/examples (p.grad.data.zero_(), before zero_grad()), with accumulation added
# expect: zero-grad-in-micro-batch
import torch
from torch import nn

torch.manual_seed(69)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
nn.init.zeros_(model[2].weight)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for i in range(24):
    for p in model.parameters():  # <- cause
        if p.grad is not None:
            p.grad.data.zero_()  # <- zero-grad-in-micro-batch, cause
    x = torch.randn(16, 8)
    loss = nn.functional.mse_loss(model(x), x[:, :1]) / 3
    loss.backward()
    if (i + 1) % 3 == 0:
        optimizer.step()
        print(i, loss.item())
