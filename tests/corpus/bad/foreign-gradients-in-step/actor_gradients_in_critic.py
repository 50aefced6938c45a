# An off-policy agent: the actor's loss leaves gradients in the critic, and the critic's next update applies them too.
# source: ray-project/ray#65125
# expect: foreign-gradients-in-step
import torch
from torch import nn


class Agent:
    def __init__(self, n_obs=5, n_act=2):
        self.actor = nn.Sequential(nn.Linear(n_obs, 24), nn.ReLU(), nn.Linear(24, n_act), nn.Tanh())
        self.critic = nn.Sequential(nn.Linear(n_obs + n_act, 24), nn.ReLU(), nn.Linear(24, 1))
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-3)

    def q(self, obs, act):
        return self.critic(torch.cat([obs, act], dim=1)).squeeze(1)

    def update_critic(self, obs, act, reward, nxt):
        with torch.no_grad():  # <- cause
            target = reward + 0.95 * self.q(nxt, self.actor(nxt))
        loss = nn.functional.mse_loss(self.q(obs, act), target)
        loss.backward()  # <- cause
        self.critic_opt.step()  # <- foreign-gradients-in-step, cause
        self.critic_opt.zero_grad()  # <- cause
        return loss.item()

    def update_actor(self, obs):
        self.actor_opt.zero_grad()
        loss = -self.q(obs, self.actor(obs)).mean()
        loss.backward()  # <- cause
        self.actor_opt.step()
        return loss.item()


torch.manual_seed(2)
agent = Agent()
for step in range(20):
    obs, act = torch.randn(32, 5), torch.rand(32, 2) * 2 - 1
    reward = -(act - obs[:, :2].clamp(-1, 1)).pow(2).sum(1)
    critic_loss = agent.update_critic(obs, act, reward, 0.9 * obs + 0.1 * torch.randn(32, 5))
    actor_loss = agent.update_actor(obs)
    if step % 5 == 0:
        print(f"{step} critic {critic_loss:.4f} actor {actor_loss:.4f}")
