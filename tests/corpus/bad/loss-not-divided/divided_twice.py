# Windows of four: the loss is divided where it is made and once more in the helper that calls backward().
# source: none (a public bug report, written small)
# expect: loss-not-divided
# severity: hint (a larger learning rate makes up for it)
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-2)


def backward(loss):
    (loss / 4).backward()  # <- loss-not-divided, cause


for step in range(80):
    x = torch.randn(16, 8)
    loss = nn.functional.mse_loss(net(x), x[:, :1]) / 4  # <- cause
    backward(loss)  # divides again
    if (step + 1) % 4 == 0:
        opt.step()
        opt.zero_grad()
