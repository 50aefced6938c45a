# Actor-critic: values and log-probabilities are saved with their graphs, the advantage uses value.item(), two sums make
# one loss at the episode's end.
# source: pytorch/examples reinforcement_learning/actor_critic.py
from collections import namedtuple

import torch
from torch import nn, optim
from torch.nn import functional as F

torch.manual_seed(63)
SavedAction = namedtuple("SavedAction", ["log_prob", "value"])


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(3, 32)
        self.action_head, self.value_head = nn.Linear(32, 3), nn.Linear(32, 1)

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


model = Policy()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
saved_actions, rewards, totals = [], [], []
for _episode in range(120):
    for _ in range(12):
        state = torch.rand(3)
        probs, state_value = model(state)
        m = torch.distributions.Categorical(probs)
        action = m.sample()
        saved_actions.append(SavedAction(m.log_prob(action), state_value))
        rewards.append(float(action == state.argmax()))
    totals.append(sum(rewards))
    policy_losses, value_losses = [], []
    for (log_prob, value), r in zip(saved_actions, rewards, strict=True):
        advantage = r - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([r])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del rewards[:]
    del saved_actions[:]
print(sum(totals[:20]) / 240, sum(totals[-20:]) / 240)
