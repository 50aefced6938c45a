# Matrix factorization that adds each loss to a running total and calls backward on the total with retain_graph=True.
# source: GBLin5566/toward-controlled-generation-of-text-pytorch#9
# expect: retain-graph-growth
import torch
from torch import nn
from torch.optim import SGD

torch.manual_seed(0)
users, items = nn.Embedding(30, 6), nn.Embedding(40, 6)
optimizer = SGD([*users.parameters(), *items.parameters()], lr=0.05)
u, i = torch.randint(0, 30, (240,)), torch.randint(0, 40, (240,))
rating = torch.randn(240)

total_loss = 0.0
for step, batch in enumerate(torch.arange(240).split(12)):
    score = (users(u[batch]) * items(i[batch])).sum(1)
    total_loss = 0.9 * total_loss + 0.1 * (score - rating[batch]).pow(2).mean()  # <- cause
    optimizer.zero_grad()
    total_loss.backward(retain_graph=True)  # <- retain-graph-growth, cause
    optimizer.step()
    if step % 5 == 0:
        print(f"step {step} smoothed loss {total_loss.item():.4f}")
