# An off-policy critic: rewards of shape (N,) plus next values of shape (N, 1) make a target of N by N.
# source: thu-ml/tianshou#43
# expect: loss-broadcasts
# cause: not found (the target was broadcast above, where it was made)
import random
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn


class ReplayBuffer:
    def __init__(self, size=200):
        self.storage = deque(maxlen=size)

    def add(self, *transition):
        self.storage.append(transition)

    def sample(self, batch_size):
        obs, act, rew, obs_next, done = zip(*random.sample(self.storage, batch_size), strict=True)
        rew, done = torch.tensor(rew), torch.tensor(done)  # <- cause
        return torch.stack(obs), torch.stack(act), rew, torch.stack(obs_next), done


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, obs, act):
        return self.model(torch.cat([obs, act], dim=1))


torch.manual_seed(0)
random.seed(0)
critic, critic_old = Critic(), Critic()
critic_old.load_state_dict(critic.state_dict())
critic_optim = torch.optim.Adam(critic.parameters(), lr=3e-3)
buffer = ReplayBuffer()
obs = torch.randn(3)
for step in range(80):
    act = torch.rand(2) * 2 - 1
    obs_next = 0.8 * obs + 0.2 * torch.randn(3)
    buffer.add(obs, act, -float((act - obs[:2]).square().sum()), obs_next, float(step % 20 == 19))
    obs = obs_next
    if len(buffer.storage) < 32:
        continue
    obs_b, act_b, rew_b, next_b, done_b = buffer.sample(16)
    with torch.no_grad():
        target_q = rew_b + 0.99 * (1 - done_b) * critic_old(next_b, torch.zeros(16, 2))  # <- cause
    critic_loss = F.mse_loss(critic(obs_b, act_b), target_q)  # <- loss-broadcasts
    critic_optim.zero_grad()
    critic_loss.backward()
    critic_optim.step()
    with torch.no_grad():
        for old, new in zip(critic_old.parameters(), critic.parameters(), strict=True):
            old.lerp_(new, 0.05)
    if step % 16 == 0:
        print(f"step {step} critic loss {critic_loss.item():.4f}")
