# Both nets are clipped before both steps, an EMA loads the net's state, a state is loaded before any step, and the
# decoder is unfrozen in the middle.
# source: none (right ways near several mistakes, written small)
import copy

import torch
from torch import nn

torch.manual_seed(0)
gen, critic = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)), nn.Linear(4, 1)
ema = copy.deepcopy(gen)
gen[2].requires_grad_(False)
opt_gen = torch.optim.Adam(gen.parameters(), lr=1e-3)
opt_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt_gen, mode="max", patience=0)
gen.load_state_dict(gen.state_dict())
for step, real in enumerate(torch.randn(24, 16, 4)):
    if step == 10:
        gen[2].requires_grad_(True)
    opt_gen.zero_grad()
    opt_critic.zero_grad()
    fake = gen(torch.randn(16, 4))
    (real.mean(0) - fake.mean(0)).square().sum().backward()
    (critic(fake.detach()).mean() - critic(real).mean()).backward()
    nn.utils.clip_grad_norm_(gen.parameters(), 0.5)
    nn.utils.clip_grad_norm_(critic.parameters(), 0.5)
    opt_gen.step()
    opt_critic.step()
    plateau.step(-(real - fake).square().mean().item())
    best = copy.deepcopy(gen.state_dict())
    ema.load_state_dict(gen.state_dict())
gen.load_state_dict(best)
