# An actor-critic agent: the line of the actor's optimizer was copied from the critic's, and its net was not changed.
# source: sfujim/TD3 DDPG.py, with the critic's parameters in both optimizers
# expect: params-in-two-optimizers
import copy

import torch
import torch.nn.functional as F
from torch import nn


class DDPG:
    def __init__(self, state_dim=4, action_dim=2, discount=0.9, tau=0.05):
        self.actor = nn.Sequential(nn.Linear(state_dim, 24), nn.ReLU(), nn.Linear(24, action_dim), nn.Tanh())
        self.critic = nn.Sequential(nn.Linear(state_dim + action_dim, 24), nn.ReLU(), nn.Linear(24, 1))
        self.critic_target = copy.deepcopy(self.critic)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), weight_decay=1e-2)
        self.actor_optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-4)  # <- params-in-two-optimizers, cause
        self.discount, self.tau = discount, tau

    def train(self, state, action, reward, next_state):
        with torch.no_grad():
            target_q = self.critic_target(torch.cat([next_state, self.actor(next_state)], 1))
            target_q = reward + self.discount * target_q
        critic_loss = F.mse_loss(self.critic(torch.cat([state, action], 1)), target_q)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()

        actor_loss = -self.critic(torch.cat([state, self.actor(state)], 1)).mean()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()
        with torch.no_grad():
            for param, target in zip(self.critic.parameters(), self.critic_target.parameters(), strict=True):
                target.lerp_(param, self.tau)
        return critic_loss.item(), actor_loss.item()


torch.manual_seed(6)
agent = DDPG()
for step in range(20):
    state, action = torch.randn(32, 4), torch.rand(32, 2) * 2 - 1
    reward = -(action - state[:, :2].tanh()).pow(2).sum(1, keepdim=True)
    losses = agent.train(state, action, reward, 0.9 * state + 0.1 * torch.randn(32, 4))
    if step % 5 == 0:
        print(step, *losses)
