# A Wasserstein GAN that clips its critic's weights through .data before each of the critic's updates.
# source: martinarjovsky/WassersteinGAN#50
# expect: data-write-in-loop
# severity: hint (no graph is alive at that moment, so no_grad would do the same)
import torch
from torch import nn
from torch.optim import RMSprop

torch.manual_seed(5)
nz, clamp, critic_iters = 4, 0.05, 3


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, x):
        return self.main(x).mean()


critic = Critic()
generator = nn.Sequential(nn.Linear(nz, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer_d, optimizer_g = RMSprop(critic.parameters(), lr=5e-4), RMSprop(generator.parameters(), lr=5e-4)


def real_points(n):
    return torch.randn(n, 2) * 0.1 + torch.tensor([[1.0, 1.0], [-1.0, 1.0]])[torch.randint(2, (n,))]


for gen_iterations in range(12):
    for _ in range(critic_iters):
        for p in critic.parameters():
            p.data.clamp_(-clamp, clamp)  # <- data-write-in-loop, cause
        with torch.no_grad():
            fake = generator(torch.randn(32, nz))
        critic.zero_grad()
        err_d = critic(fake) - critic(real_points(32))
        err_d.backward()
        optimizer_d.step()

    for p in critic.parameters():
        p.requires_grad_(False)
    generator.zero_grad()
    err_g = -critic(generator(torch.randn(32, nz)))
    err_g.backward()
    optimizer_g.step()
    for p in critic.parameters():
        p.requires_grad_(True)
    if gen_iterations % 4 == 0:
        print(f"[{gen_iterations}] Loss_D: {err_d.item():.5f} Loss_G: {err_g.item():.5f}")
