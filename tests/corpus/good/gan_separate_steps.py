# DCGAN's loop: two backwards for the discriminator, then the generator's loss leaves gradients in the discriminator
# that nobody uses: they are wiped at the start of the next iteration.
# source: pytorch/examples dcgan/main.py
import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(0)
nz, batch = 4, 16
net_g = nn.Sequential(nn.Linear(nz, 16), nn.ReLU(), nn.Linear(16, 2))
net_d = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1), nn.Sigmoid())
criterion = nn.BCELoss()
optimizer_d = optim.Adam(net_d.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_g = optim.Adam(net_g.parameters(), lr=2e-3, betas=(0.5, 0.999))

for epoch in range(3):
    for _i in range(8):
        # (1) update D: maximise log(D(x)) + log(1 - D(G(z)))
        net_d.zero_grad()
        real = torch.randn(batch, 2) * 0.3 + torch.tensor([1.0, -1.0])
        label = torch.full((batch,), 1.0)
        err_d_real = criterion(net_d(real).view(-1), label)
        err_d_real.backward()

        fake = net_g(torch.randn(batch, nz))
        label.fill_(0.0)
        err_d_fake = criterion(net_d(fake.detach()).view(-1), label)
        err_d_fake.backward()
        err_d = err_d_real + err_d_fake
        optimizer_d.step()

        # (2) update G: maximise log(D(G(z)))
        net_g.zero_grad()
        label.fill_(1.0)
        err_g = criterion(net_d(fake).view(-1), label)
        err_g.backward()
        optimizer_g.step()
    print(epoch, f"Loss_D {err_d.item():.3f} Loss_G {err_g.item():.3f}")
