# Adam for a quick start, then SGD over the same parameters: when the loss no longer falls fast, the optimizer is
# exchanged once, inside the loop and on purpose, together with its schedule.
# source: arxiv.org/abs/1712.07628 (improving generalization by switching from Adam to SGD)
import torch
from torch import nn

torch.manual_seed(258)
x = torch.randn(320, 12)
y = (x @ torch.randn(12, 4)).argmax(1)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler, last = None, float("inf")
for epoch in range(10):
    total = 0.0
    for rows in torch.randperm(320).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 10
    if scheduler is not None:
        scheduler.step()
    if isinstance(optimizer, torch.optim.Adam) and total > 0.8 * last:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=9 - epoch)
    last = total
    print(epoch, type(optimizer).__name__, f"{total:.4f}")
