# Heavy-ball momentum with no buffer of its own: instead of being cleared, .grad is multiplied by 0.9 after every step,
# so that the next backward adds to it: b = mu * b + g.
# source: docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html (the formula)
# and proceedings.mlr.press/v28/sutskever13.html
import torch
from torch import nn, optim

torch.manual_seed(37)
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
sgd = optim.SGD(net.parameters(), lr=0.01)
mu = 0.9
inputs = torch.randn(200, 6)
outputs = inputs.abs().sum(1, keepdim=True)

for epoch in range(5):
    for rows in torch.randperm(200).split(25):
        nn.functional.l1_loss(net(inputs[rows]), outputs[rows]).backward()
        sgd.step()
        with torch.no_grad():
            for p in net.parameters():
                p.grad.mul_(mu)
    with torch.no_grad():
        print(epoch, nn.functional.l1_loss(net(inputs), outputs).item())
