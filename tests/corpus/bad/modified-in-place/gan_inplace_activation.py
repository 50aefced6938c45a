# A GAN whose discriminator overwrites what its sigmoid has returned and needs for backward; D has stepped before.
# source: dreamgonfly/GAN-tutorial#1
# expect: modified-in-place
# raises: RuntimeError
import torch
from torch import nn


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(2, 16), nn.Linear(16, 1)

    def forward(self, x, smooth=False):
        h = torch.sigmoid(self.hidden(x))
        if smooth:
            h *= 0.9  # <- cause
        return self.out(h)


def train_on(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()  # <- modified-in-place
    optimizer.step()
    return loss.item()


torch.manual_seed(72)
G, D = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)), Discriminator()
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for i in range(8):
    fake = G(torch.randn(32, 4))
    d = train_on(D(fake.detach()).mean() - D(torch.randn(32, 2)).mean(), opt_d)
    g = train_on(-D(fake, smooth=i >= 3).mean(), opt_g)
    print(i, d, g)
