# A GAN whose lines for the critic were copied from those for the generator: they still clip the generator.
# source: none (a common mistake, written small)
# expect: clip-without-effect
import torch
from torch import nn

torch.manual_seed(0)
gen, critic = nn.Linear(4, 8), nn.Linear(8, 1)
opt_gen = torch.optim.Adam(gen.parameters(), lr=1e-3)
opt_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)

for real in torch.randn(15, 16, 8):
    fake = gen(torch.randn(16, 4))
    opt_gen.zero_grad()
    (-critic(fake).mean()).backward()
    nn.utils.clip_grad_norm_(gen.parameters(), 0.5)
    opt_gen.step()

    opt_critic.zero_grad()
    (critic(fake.detach()).mean() - critic(real).mean()).backward()
    nn.utils.clip_grad_norm_(gen.parameters(), 0.5)  # <- clip-without-effect, cause
    opt_critic.step()
