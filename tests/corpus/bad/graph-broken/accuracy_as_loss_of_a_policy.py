# A policy is trained to act as an expert did: its loss is the share of steps where the most likely action differs.
# source: none (a common mistake, written small)
# expect: graph-broken
# raises: RuntimeError
import torch
from torch import nn, optim

torch.manual_seed(4)
policy = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 3), nn.Softmax(dim=-1))
sgd = optim.SGD(policy.parameters(), lr=0.1)


def act(observations):
    return torch.argmax(policy(observations), dim=-1)  # <- cause


def imitation_loss(observations, expert):
    return 1.0 - (act(observations) == expert).float().mean()  # <- cause


for observations in torch.randn(4, 32, 4):
    expert = observations[:, :3].argmin(1)
    loss = imitation_loss(observations, expert)
    sgd.zero_grad()
    loss.backward()  # <- graph-broken
    sgd.step()
