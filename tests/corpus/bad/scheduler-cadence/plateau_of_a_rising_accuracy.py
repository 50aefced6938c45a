# ReduceLROnPlateau gets an accuracy and waits for it to fall: the rate is cut while the net gets better.
# source: none (a common mistake, written small)
# expect: scheduler-cadence
# severity: hint (what the metric means is told by its name only)
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 3)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)  # <- cause
x = torch.randn(256, 8)
y = x[:, :3].argmax(1)
for _epoch in range(10):
    for xb, yb in zip(x.split(32), y.split(32), strict=True):
        loss = nn.functional.cross_entropy(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    accuracy = (net(x).argmax(1) == y).float().mean().item()
    schedule.step(accuracy)  # <- scheduler-cadence
