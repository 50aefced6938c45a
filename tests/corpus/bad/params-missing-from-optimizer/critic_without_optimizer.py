# A WGAN whose critic has a loss of its own, cleared each time, but no optimizer: it never learns.
# source: written for the rule: a net with a loss of its own that no optimizer holds
# expect: params-missing-from-optimizer
import torch
from torch import nn

torch.manual_seed(4)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer_g = torch.optim.RMSprop(generator.parameters(), lr=1e-3)  # <- params-missing-from-optimizer, cause
for step in range(12):
    real = torch.randn(16, 2) + 2
    fake = generator(torch.randn(16, 4))
    critic.zero_grad()
    critic_loss = critic(fake.detach()).mean() - critic(real).mean()
    critic_loss.backward()
    optimizer_g.zero_grad()
    generator_loss = -critic(fake).mean()
    generator_loss.backward()
    optimizer_g.step()
    print(step, critic_loss.item(), generator_loss.item())
