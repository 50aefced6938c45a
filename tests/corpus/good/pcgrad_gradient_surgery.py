# Gradient surgery: one backward per task with the gradients cleared in between, conflicting parts projected away, and
# the sum written back into .grad.
# source: WeiChengTseng/Pytorch-PCGrad pcgrad.py
import copy
import random

import torch
import torch.nn as nn
import torch.optim as optim


class PCGrad:
    def __init__(self, optimizer):
        self._optim = optimizer

    def zero_grad(self):
        return self._optim.zero_grad(set_to_none=True)

    def step(self):
        return self._optim.step()

    def pc_backward(self, objectives):
        grads, params = [], [p for group in self._optim.param_groups for p in group["params"]]
        for obj in objectives:
            self._optim.zero_grad(set_to_none=True)
            obj.backward(retain_graph=True)
            flat = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in params]
            grads.append(torch.cat([g.flatten() for g in flat]))
        pc_grad = copy.deepcopy(grads)
        for g_i in pc_grad:
            random.shuffle(grads)
            for g_j in grads:
                dot = torch.dot(g_i, g_j)
                if dot < 0:
                    g_i -= dot * g_j / (g_j.norm() ** 2)
        merged = torch.stack(pc_grad).sum(dim=0)
        for p, g in zip(params, merged.split([p.numel() for p in params]), strict=True):
            p.grad = g.view_as(p)


class MultiHeadTestNet(nn.Module):
    def __init__(self):
        super().__init__()
        self._linear = nn.Linear(3, 8)
        self._head1 = nn.Linear(8, 2)
        self._head2 = nn.Linear(8, 4)

    def forward(self, x):
        feat = torch.relu(self._linear(x))
        return self._head1(feat), self._head2(feat)


random.seed(38)
torch.manual_seed(38)
net = MultiHeadTestNet()
pc_adam = PCGrad(optim.Adam(net.parameters(), lr=1e-2))
x = torch.randn(64, 3)
for i in range(40):
    y1, y2 = net(x)
    losses = [nn.functional.l1_loss(y1, -x[:, :2]), nn.functional.mse_loss(y2, x.repeat(1, 2)[:, :4])]
    pc_adam.zero_grad()
    pc_adam.pc_backward(losses)
    pc_adam.step()
    if i % 13 == 0:
        print(i, [round(v.item(), 4) for v in losses])
