# A Q-learning critic whose target is computed with gradients: they go into the target network, which is only copied.
# source: pranz24/pytorch-soft-actor-critic sac.py, with the mistake put in
# expect: params-missing-from-optimizer
# severity: hint (another line may be meant to move them)
# cause: not found (the call of the target net is not known to be the mistake)
import copy

import torch
from torch import nn
from torch.nn import functional as F


def soft_update(target, source, tau=0.05):
    for target_param, param in zip(target.parameters(), source.parameters(), strict=True):
        target_param.data.copy_(target_param.data * (1.0 - tau) + param.data * tau)


torch.manual_seed(2)
critic = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 2))
critic_target = copy.deepcopy(critic)
critic_optim = torch.optim.Adam(critic.parameters(), lr=3e-4)  # <- params-missing-from-optimizer
for updates in range(24):
    state, action = torch.randn(32, 3), torch.randint(0, 2, (32, 1))
    reward, next_state = state[:, :1] * (2 * action - 1), torch.randn(32, 3)
    min_qf_next_target = critic_target(next_state).max(1, keepdim=True)[0]  # <- cause
    next_q_value = reward + 0.99 * min_qf_next_target
    qf_loss = F.mse_loss(critic(state).gather(1, action), next_q_value)
    critic_optim.zero_grad()
    qf_loss.backward()
    critic_optim.step()
    soft_update(critic_target, critic)
    print(updates, qf_loss.item())
