# The gradient's norm is logged at every fourth update, by a function that clears the gradients when it is done.
# source: written for the rule: gradients that are cleared at regular updates only
# expect: zero-grad-between-backward-and-step
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def log_gradients(history):
    history.append(sum(param.grad.norm() for param in model.parameters()).item())
    model.zero_grad()  # <- zero-grad-between-backward-and-step, cause


history = []
for step in range(1, 61):
    x = torch.randn(16, 6)
    optimizer.zero_grad()
    loss = nn.functional.smooth_l1_loss(model(x), x[:, :1] * x[:, 1:2])
    loss.backward()
    if step % 4 == 0:
        log_gradients(history)
    optimizer.step()
print(f"loss {loss.item():.4f}, gradients {history[-1]:.4f}")
