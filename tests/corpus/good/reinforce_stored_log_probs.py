# REINFORCE: log-probabilities of a whole episode are kept with their graphs until its end, where one backward uses and
# drops them all.
# source: pytorch/examples reinforcement_learning/reinforce.py
from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

torch.manual_seed(62)
rng = np.random.default_rng(62)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1, self.dropout, self.affine2 = nn.Linear(2, 32), nn.Dropout(p=0.1), nn.Linear(32, 2)
        self.saved_log_probs, self.rewards = [], []

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.dropout(self.affine1(x)))), dim=1)


policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=2e-2)


def select_action(state):
    m = Categorical(policy(torch.from_numpy(state).float().unsqueeze(0)))
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode(gamma=0.9):
    ret, returns = 0, []
    for r in policy.rewards[::-1]:
        ret = r + gamma * ret
        returns.insert(0, ret)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    policy_loss = [-log_prob * ret for log_prob, ret in zip(policy.saved_log_probs, returns, strict=True)]
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]


running_reward = -30.0
for i_episode in count(1):
    state, ep_reward = rng.normal(size=2), 0.0
    for _t in range(20):
        push = select_action(state) * 2 - 1
        state = 0.8 * state + np.array([0.3 * push, 0.0]) + 0.2 * rng.normal(size=2)
        reward = -abs(state[0] - 1.5)
        policy.rewards.append(reward)
        ep_reward += reward
    running_reward = 0.1 * ep_reward + 0.9 * running_reward
    finish_episode()
    if i_episode % 15 == 0:
        print(f"Episode {i_episode} last {ep_reward:.2f} average {running_reward:.2f}")
    if i_episode >= 60:
        break
