# A monotone network: after each step the weights are clamped to be positive, in place and under no_grad; the
# optimizer's own loop over tensors (foreach=False) is used. `.data` is written once, before the loop, to start with
# positive weights.
# source: https://www.codegenes.net/blog/pytorch-adam-weight-positivity,
#   docs.pytorch.org/docs/stable/optim.html (foreach)
import torch
from torch import nn

torch.manual_seed(250)
net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
layers = [m for m in net if isinstance(m, nn.Linear)]
for layer in layers:
    layer.weight.data = layer.weight.data.abs() / 2
    layer.bias.data.zero_()
optimizer = torch.optim.NAdam(net.parameters(), lr=5e-3, foreach=False)
x = torch.rand(240, 2) * 4 - 2
y = (x[:, :1].exp() + x[:, 1:] ** 3) / 8
for epoch in range(8):
    total = 0.0
    for rows in torch.randperm(240).split(24):
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for layer in layers:
                layer.weight.clamp_(min=0)
        total += loss.item()
    print(epoch, total / 10)
up = torch.linspace(-2, 2, 50)[:, None].expand(-1, 2)
with torch.no_grad():
    print("monotone:", bool((net(up).diff(dim=0) >= 0).all()))
