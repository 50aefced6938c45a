# Soft actor-critic: the critics are frozen by requires_grad while the actor learns and thawed after it, two critics
# share one optimizer, and the target is polyak-averaged in place.
# source: openai/spinningup spinup/algos/pytorch/sac/sac.py
import itertools
from copy import deepcopy

import torch
import torch.nn as nn
from torch.optim import Adam

torch.manual_seed(65)


class MLPActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
        self.q1 = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))
        self.q2 = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))

    def act(self, o):
        mu, log_std = self.pi(o).chunk(2, -1)
        dist = torch.distributions.Normal(mu, log_std.clamp(-3, 1).exp())
        a = dist.rsample()
        return torch.tanh(a), (dist.log_prob(a) - torch.log(1 - torch.tanh(a) ** 2 + 1e-6)).sum(-1)


ac = MLPActorCritic()
ac_targ = deepcopy(ac)
for p in ac_targ.parameters():
    p.requires_grad = False
q_params = list(itertools.chain(ac.q1.parameters(), ac.q2.parameters()))
pi_optimizer, q_optimizer = Adam(ac.pi.parameters(), lr=3e-3), Adam(q_params, lr=3e-3)
gamma, alpha, polyak = 0.5, 0.05, 0.9

for t in range(60):
    o, o2 = torch.randn(2, 64, 2)
    with torch.no_grad():
        a = ac.act(o)[0]
        r = -((a.squeeze(-1) - o[:, 0].tanh()) ** 2)
    q_optimizer.zero_grad()
    q1, q2 = (q(torch.cat([o, a], -1)).squeeze(-1) for q in (ac.q1, ac.q2))
    with torch.no_grad():
        a2, logp_a2 = ac.act(o2)
        x2 = torch.cat([o2, a2], -1)
        q_targ = torch.min(ac_targ.q1(x2), ac_targ.q2(x2)).squeeze(-1)
        backup = r + gamma * (q_targ - alpha * logp_a2)
    loss_q = ((q1 - backup) ** 2).mean() + ((q2 - backup) ** 2).mean()
    loss_q.backward()
    q_optimizer.step()

    for p in q_params:
        p.requires_grad = False
    pi_optimizer.zero_grad()
    pi, logp_pi = ac.act(o)
    x = torch.cat([o, pi], -1)
    loss_pi = (alpha * logp_pi - torch.min(ac.q1(x), ac.q2(x)).squeeze(-1)).mean()
    loss_pi.backward()
    pi_optimizer.step()
    for p in q_params:
        p.requires_grad = True

    with torch.no_grad():
        for p, p_targ in zip(ac.parameters(), ac_targ.parameters(), strict=True):
            p_targ.data.mul_(polyak)
            p_targ.data.add_((1 - polyak) * p.data)
    if t % 20 == 19:
        print(t, f"q {loss_q.item():.3f} pi {loss_pi.item():.3f} reward {r.mean().item():.3f}")
