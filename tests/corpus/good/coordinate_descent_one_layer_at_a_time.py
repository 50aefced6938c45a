# Block coordinate descent: in each step one layer only is thawed and moved, by its own optimizer; the loss's gradient
# for the others is not computed.
# source: arxiv.org/abs/1803.09082 (block coordinate descent)
import torch
from torch import nn

torch.manual_seed(264)
net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
layers = [net[0], net[2], net[4]]
optimizers = [torch.optim.Adam(layer.parameters(), lr=1e-2) for layer in layers]
x = torch.randn(256, 6)
y = (x[:, :2].sum(1, keepdim=True)).sin() + 0.5 * x[:, 2:3]
net.requires_grad_(False)
for cycle in range(25):
    for layer, optimizer in zip(layers, optimizers, strict=True):
        layer.requires_grad_(True)
        for rows in torch.randperm(256).split(64):
            loss = nn.functional.mse_loss(net(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        layer.requires_grad_(False)
    if cycle % 5 == 0:
        print(cycle, loss.item())
