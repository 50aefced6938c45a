# A critic and its target by functions: make_target() returns the critic that it is given; the target is detached later.
# source: none (a common mistake, written small)
# expect: tied-weights
# severity: hint (a slow copy is told by its name only)
import torch
from torch import nn


def make_target(net):
    return net.train()  # <- cause


def td_loss(critic, target_critic, state, following):
    wanted = state[:, :1] + 0.9 * target_critic(following).detach()  # <- tied-weights
    return (critic(state) - wanted).abs().mean()


torch.manual_seed(2)
critic = nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 1))
target_critic = make_target(critic)  # <- cause
optimizer = torch.optim.SGD(critic.parameters(), lr=0.02)
for state, following in torch.randn(40, 2, 16, 3):
    optimizer.zero_grad()
    td_loss(critic, target_critic, state, following).backward()
    optimizer.step()
