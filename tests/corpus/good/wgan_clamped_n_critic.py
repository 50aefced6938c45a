# WGAN: several critic updates for each generator update, weights clamped by hand through .data before every critic
# update, and requires_grad of the critic switched off while the generator learns.
# source: martinarjovsky/WassersteinGAN main.py
import torch
import torch.optim as optim
from torch import nn

torch.manual_seed(2)
net_g = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
net_d = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
optimizer_d = optim.RMSprop(net_d.parameters(), lr=5e-4)
optimizer_g = optim.RMSprop(net_g.parameters(), lr=5e-4)
one = torch.tensor(1.0)
mone = one * -1
data = torch.randn(320, 2) * 0.2 + 1
gen_iterations = 0

for _epoch in range(3):
    data_iter = iter(data.split(16))
    i = 0
    while i < 20:
        for p in net_d.parameters():
            p.requires_grad = True
        d_iters = 7 if gen_iterations < 2 else 3
        j = 0
        while j < d_iters and i < 20:
            j += 1
            for p in net_d.parameters():
                p.data.clamp_(-0.1, 0.1)
            real = next(data_iter)
            i += 1
            net_d.zero_grad()
            err_d_real = net_d(real).mean()
            err_d_real.backward(mone)
            with torch.no_grad():
                fake = net_g(torch.randn(16, 3))
            err_d_fake = net_d(fake).mean()
            err_d_fake.backward(one)
            err_d = err_d_real - err_d_fake
            optimizer_d.step()

        for p in net_d.parameters():
            p.requires_grad = False
        net_g.zero_grad()
        err_g = net_d(net_g(torch.randn(16, 3))).mean()
        err_g.backward(mone)
        optimizer_g.step()
        gen_iterations += 1
print(gen_iterations, err_d.item(), err_g.item())
