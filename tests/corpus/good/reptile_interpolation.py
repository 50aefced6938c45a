# Reptile: a clone learns the task by itself; then the difference between the two networks is written into .grad of the
# original, whose optimizer steps although no backward ever touched it.
# source: gabrielhuang/reptile-pytorch train_omniglot.py
import copy

import torch
from torch import nn

torch.manual_seed(28)


class ReptileModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x)

    def point_grad_to(self, target):
        for p, target_p in zip(self.parameters(), target.parameters(), strict=True):
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            p.grad.data.zero_()
            p.grad.data.add_(p.data - target_p.data)


def do_learning(net, optimizer, x, y, iterations):
    net.train()
    for _ in range(iterations):
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


meta_net = ReptileModel()
meta_optimizer = torch.optim.SGD(meta_net.parameters(), lr=0.5)
state = None
for meta_iteration in range(30):
    net = copy.deepcopy(meta_net)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, betas=(0.0, 0.999))
    if state is not None:
        optimizer.load_state_dict(state)
    x = torch.rand(20, 1) * 4 - 2
    y = torch.sin(x * 2 + torch.rand(1) * 0.4)
    loss = do_learning(net, optimizer, x, y, iterations=5)
    state = optimizer.state_dict()
    meta_net.point_grad_to(net)
    meta_optimizer.step()
    if meta_iteration % 10 == 0:
        print(meta_iteration, loss)
