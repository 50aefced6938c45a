# WGAN-GP: three backwards (real, fake, penalty) make one critic update; the penalty is differentiated twice.
# source: caogang/wgan-gp gan_mnist.py, and Zeleni9/pytorch-wgan#14 that asks how three backwards can be right
import torch
from torch import autograd, nn

torch.manual_seed(3)
CRITIC_ITERS, LAMBDA, BATCH = 5, 10, 24
G = nn.Sequential(nn.Linear(2, 32), nn.ReLU(True), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.Softplus(), nn.Linear(32, 1))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9))


def inf_train_gen():
    while True:
        centre = torch.randint(0, 2, (BATCH, 1)) * 2.0 - 1
        yield torch.cat([centre, centre], 1) + 0.05 * torch.randn(BATCH, 2)


def calc_gradient_penalty(net, real, fake):
    alpha = torch.rand(BATCH, 1)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    out = net(mixed)
    (gradients,) = autograd.grad(
        outputs=out, inputs=mixed, grad_outputs=torch.ones_like(out), create_graph=True, retain_graph=True
    )
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * LAMBDA


data = inf_train_gen()
minus_one = torch.tensor(-1.0)
for iteration in range(6):
    D.requires_grad_(True)
    for _ in range(CRITIC_ITERS):
        real = next(data)
        D.zero_grad()
        d_real = D(real).mean()
        d_real.backward(minus_one)
        fake = G(torch.randn(BATCH, 2)).detach()
        d_fake = D(fake).mean()
        d_fake.backward()
        gradient_penalty = calc_gradient_penalty(D, real, fake)
        gradient_penalty.backward()
        wasserstein = d_real - d_fake
        opt_d.step()
    D.requires_grad_(False)
    G.zero_grad()
    cost = D(G(torch.randn(BATCH, 2))).mean()
    cost.backward(minus_one)
    opt_g.step()
    print(iteration, f"W {wasserstein.item():.3f} gp {gradient_penalty.item():.3f}")
