# First-order MAML with a cloned learner: the clone takes inner steps with an optimizer of its own; the gradients of its
# query loss are added to those of the original, whose optimizer steps once per batch of tasks.
# source: dragen1860/MAML-Pytorch meta.py, arxiv.org/abs/1803.02999 (first-order MAML)
import copy

import torch
from torch import nn

torch.manual_seed(246)
meta = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
meta_optimizer = torch.optim.Adam(meta.parameters(), lr=1e-2)
tasks_per_batch = 4


def task():
    amplitude, phase = torch.rand(()) + 1, torch.rand(())
    while True:
        x = torch.rand(16, 1) * 6 - 3
        yield x, amplitude * (x + phase).sin()


query_losses = []
for iteration in range(60):
    for p in meta.parameters():
        p.grad = torch.zeros_like(p)
    for _ in range(tasks_per_batch):
        data = task()
        learner = copy.deepcopy(meta)
        inner = torch.optim.SGD(learner.parameters(), lr=0.05)
        for _ in range(3):
            x, y = next(data)
            loss = nn.functional.mse_loss(learner(x), y)
            inner.zero_grad()
            loss.backward()
            inner.step()
        x, y = next(data)
        query = nn.functional.mse_loss(learner(x), y)
        inner.zero_grad()
        query.backward()
        for p, q in zip(meta.parameters(), learner.parameters(), strict=True):
            p.grad.add_(q.grad, alpha=1 / tasks_per_batch)
        query_losses.append(query.item())
    meta_optimizer.step()
    if iteration % 15 == 14:
        print(iteration, sum(query_losses) / len(query_losses))
        query_losses.clear()
