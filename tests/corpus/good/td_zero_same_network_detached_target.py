# TD(0) with one network on both sides: the bootstrapped target is the network's own answer, detached (a semi-gradient);
# a second, attached term only smooths.
# source: pytorch/tutorials intermediate_source/reinforcement_q_learning.py, incompleteideas.net/book/the-book-2nd.html
import torch
from torch import nn

torch.manual_seed(231)
value = nn.Sequential(nn.Embedding(9, 16), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
optimizer = torch.optim.SGD(value.parameters(), lr=0.1)
state = torch.full((32,), 4)
for step in range(400):
    following = state + torch.where(torch.rand(32) < 0.5, -1, 1)
    reward, done = (following == 8).float(), (following == 0) | (following == 8)
    prediction = value(state)
    target = reward + (~done) * value(following).detach()
    td_loss = (prediction - target).square().mean()
    loss = td_loss + 1e-3 * (value(torch.arange(1, 8)).diff() - 1 / 8).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = torch.where(done, torch.tensor(4), following)
    if step % 80 == 0:
        with torch.no_grad():
            error = (value(torch.arange(1, 8)) - torch.arange(1, 8) / 8).abs().mean()
        print(step, f"loss {loss.item():.4f} distance from the true values {error.item():.4f}")
