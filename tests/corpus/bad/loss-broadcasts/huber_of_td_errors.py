# Q-values of shape (N, 1) from gather() and targets of shape (N,), in a Huber loss that is written with torch.where.
# source: PyTorch's DQN tutorial, with the target's unsqueeze(1) left out and the loss written by hand
# expect: loss-broadcasts
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(policy.parameters(), lr=3e-3)
for _ in range(40):
    states = torch.randn(24, 4)
    actions = torch.randint(0, 2, (24, 1))
    q = policy(states).gather(1, actions)  # <- cause
    target = states.sum(1) * (2 * actions.squeeze(1) - 1)  # <- cause
    error = target - q  # <- loss-broadcasts, cause
    loss = torch.where(error.abs() < 1, 0.5 * error**2, error.abs() - 0.5).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
