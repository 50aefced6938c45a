# A regression takes the number out of its loss, for a log, and makes a tensor of it again before backward().
# source: https://discuss.pytorch.org/t/loss-backward-with-item/83911
# expect: graph-broken
import torch
from torch import nn

torch.manual_seed(9)
net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
loss_fn = nn.MSELoss()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
x = torch.randn(60, 5)
y = x.sum(1, keepdim=True)
log = []
for _ in range(16):
    batch = torch.randint(0, 60, (12,))
    opt.zero_grad()
    loss = loss_fn(net(x[batch]), y[batch]).item()  # <- cause
    log.append(loss)
    loss = torch.tensor(loss, requires_grad=True)  # <- cause
    loss.backward()  # <- graph-broken
    opt.step()
print(log[0], log[-1])
