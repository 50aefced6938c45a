# LBFGS with its line search and a closure that clears, computes, goes back and returns; Adam has warmed the net up.
# source: none (a common pattern, written small)
import torch
from torch import nn

torch.manual_seed(5)
x = torch.linspace(-2, 2, 60).unsqueeze(1)
y = torch.sin(2 * x)
net = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(40):
    adam.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    adam.step()
lbfgs = torch.optim.LBFGS(net.parameters(), lr=1, max_iter=8, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    return loss


history = [lbfgs.step(closure).item() for _ in range(6)]
print(history[0], history[-1])
