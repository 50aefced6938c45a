# Soft actor-critic for a robot: actor and critic share one observation encoder, and both optimizers hold it.
# source: huggingface/lerobot#2470
# expect: params-in-two-optimizers
# severity: hint (sharing a part between optimizers can be meant)
import torch
from torch import nn


class Actor(nn.Module):
    def __init__(self, encoder, action_dim):
        super().__init__()
        self.encoder, self.network = encoder, nn.Sequential(nn.Linear(16, 16), nn.SiLU())
        self.mean_layer = nn.Linear(16, action_dim)

    def forward(self, obs):
        mean = self.mean_layer(self.network(self.encoder(obs)))
        dist = torch.distributions.Normal(mean, 0.3)
        action = dist.rsample()
        return torch.tanh(action), dist.log_prob(action).sum(1, keepdim=True)


class CriticEnsemble(nn.Module):
    def __init__(self, encoder, action_dim, num_critics=2):
        super().__init__()
        self.encoder = encoder
        self.critics = nn.ModuleList(nn.Linear(16 + action_dim, 1) for _ in range(num_critics))

    def forward(self, obs, action):
        x = torch.cat([self.encoder(obs), action], dim=1).tanh()
        return torch.cat([critic(x) for critic in self.critics], dim=1)


def make_optimizers(actor, critics, lr=1e-3):
    critic_optimizer = torch.optim.Adam(critics.parameters(), lr=lr)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=lr)  # <- params-in-two-optimizers, cause
    return actor_optimizer, critic_optimizer


torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.Tanh())
actor, critics = Actor(encoder, 2), CriticEnsemble(encoder, 2)
actor_optimizer, critic_optimizer = make_optimizers(actor, critics)
for _ in range(20):
    obs, next_obs = torch.randn(32, 6), torch.randn(32, 6)
    action = torch.rand(32, 2) * 2 - 1
    reward = -(action - obs[:, :2]).square().sum(1, keepdim=True)
    with torch.no_grad():
        next_action, next_logp = actor(next_obs)
        target = reward + 0.9 * (critics(next_obs, next_action).amin(1, keepdim=True) - 0.05 * next_logp)
    critic_loss = (critics(obs, action) - target.expand(-1, 2)).square().mean()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()

    new_action, logp = actor(obs)
    actor_loss = (0.05 * logp - critics(obs, new_action).amin(1, keepdim=True)).mean()
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()
print(f"critic {critic_loss.item():.4f} actor {actor_loss.item():.4f}")
