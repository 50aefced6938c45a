# The optimizer is made again below its schedule: the cosine moves the learning rate of the first one.
# source: none (a common mistake, written small)
# expect: scheduler-before-optimizer
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 1)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=20)  # <- cause
opt = torch.optim.Adam(net.parameters(), lr=1e-2)  # <- cause
for x in torch.randn(20, 16, 8):
    loss = nn.functional.mse_loss(net(x), x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
    schedule.step()  # <- scheduler-before-optimizer
print(opt.param_groups[0]["lr"])
