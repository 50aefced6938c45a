# Detached on purpose: a baseline and an advantage as factors, a target under no_grad, a balance between two losses, a
# constant that no model makes, and a value exchanged by `a + (b - a).detach()`.
# source: arXiv:2001.06782 and arXiv:1602.01783 (weights and baselines without gradients)
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(96, 12)
y = (x[:, :2].sum(1) > 0).long()
body, head, critic = nn.Linear(12, 16), nn.Linear(16, 2), nn.Linear(16, 1)
params = [*body.parameters(), *head.parameters(), *critic.parameters()]
optimizer = torch.optim.SGD(params, lr=0.05)
total = 0.0
for _ in range(3):
    for start in range(0, 96, 16):
        h = torch.tanh(body(x[start : start + 16]))
        logits, value = head(h), critic(h).squeeze(1)
        with torch.no_grad():
            target = F.softmax(logits, dim=1)[:, 0] + 0.1
            entropy_of_data = -(y.float().mean() * y.float().mean().log())
        advantage = (target - value).detach()
        policy = -(advantage * F.log_softmax(logits, dim=1)[:, 0]).mean()
        fit = F.cross_entropy(logits, y[start : start + 16])
        balance = (fit.detach() / (policy.detach().abs() + 1e-3)).clamp(max=1.0).item()
        offset = (fit * 2 - fit).detach() * 0
        loss = fit + balance * policy + 0.5 * F.mse_loss(value, target) + 0.1 * entropy_of_data + offset
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
print(total)
