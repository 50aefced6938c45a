# TD3: transitions from a replay buffer, two critics in one optimizer with one loss, an actor that learns in every
# second update only, through one critic, whose gradients from that are cleared before its own; targets follow slowly.
# source: sfujim/TD3 TD3.py
import copy
from collections import deque

import torch
from torch import nn

torch.manual_seed(259)


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, n_out))


actor, critic = nn.Sequential(mlp(3, 1), nn.Tanh()), nn.ModuleList([mlp(4, 1), mlp(4, 1)])
actor_target, critic_target = copy.deepcopy(actor), copy.deepcopy(critic)
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=3e-3)
buffer, state = deque(maxlen=2000), torch.randn(8, 3)
for it in range(150):
    with torch.no_grad():
        action = (actor(state) + 0.3 * torch.randn(8, 1)).clamp(-1, 1)
    reward = -(action - state[:, :1].tanh()).square()
    following = 0.8 * state + 0.3 * torch.randn(8, 3)
    buffer.extend(zip(state, action, reward, following, strict=True))
    state = following
    if len(buffer) < 64:
        continue
    picked = [buffer[int(k)] for k in torch.randint(0, len(buffer), (32,))]
    s, a, r, s2 = (torch.stack(column) for column in zip(*picked, strict=True))
    with torch.no_grad():
        noise = (0.2 * torch.randn_like(a)).clamp(-0.5, 0.5)
        pair = torch.cat([s2, (actor_target(s2) + noise).clamp(-1, 1)], 1)
        target = r + 0.5 * torch.min(critic_target[0](pair), critic_target[1](pair))
    pair = torch.cat([s, a], 1)
    critic_loss = sum(nn.functional.mse_loss(q(pair), target) for q in critic)
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    if it % 2 == 0:
        actor_loss = -critic[0](torch.cat([s, actor(s)], 1)).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()
        with torch.no_grad():
            for net, slow in ((actor, actor_target), (critic, critic_target)):
                for p, q in zip(net.parameters(), slow.parameters(), strict=True):
                    q.mul_(0.98).add_(p, alpha=0.02)
    if it % 30 == 28:
        print(it, f"critic {critic_loss.item():.4f} reward {r.mean().item():.3f}")
