# Lightning's manual optimization calls step() with a closure that does nothing: the backward has run before it.
# source: Lightning-AI/pytorch-lightning#4618
import torch
from torch import nn

torch.manual_seed(66)
generator, critic = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)), nn.Linear(2, 1)
opt_g, opt_d = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
for i in range(10):
    fake, real = generator(torch.randn(12, 3)), torch.randn(12, 2) + 2
    loss_g = -critic(fake).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step(lambda: None)
    loss_d = critic(fake.detach()).mean() - critic(real).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step(closure=lambda: None)
    print(i, loss_d.item())
