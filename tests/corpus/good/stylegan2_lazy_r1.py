# StyleGAN2's lazy regularisation: every fourth iteration the discriminator takes one more step, on a gradient
# penalty alone; whole networks are switched with requires_grad, and an averaged generator is kept.
# source: rosinality/stylegan2-pytorch train.py
import copy

import torch
from torch import autograd, nn
from torch.nn import functional as F

torch.manual_seed(4)
R1, EVERY = 2.0, 4


def requires_grad(model, flag=True):
    for p in model.parameters():
        p.requires_grad = flag


def accumulate(model1, model2, decay=0.95):
    par1, par2 = dict(model1.named_parameters()), dict(model2.named_parameters())
    for k in par1:
        par1[k].data.mul_(decay).add_(par2[k].data, alpha=1 - decay)


def train(generator, discriminator, g_ema, g_optim, d_optim):
    for i in range(16):
        real_img = torch.rand(8, 1, 6, 6).requires_grad_(False)
        requires_grad(generator, False)
        requires_grad(discriminator, True)
        fake_img = generator(torch.randn(8, 6)).view(8, 1, 6, 6)
        d_loss = F.softplus(-discriminator(real_img)).mean() + F.softplus(discriminator(fake_img)).mean()
        discriminator.zero_grad()
        d_loss.backward()
        d_optim.step()

        if i % EVERY == 0:
            real_img.requires_grad = True
            real_pred = discriminator(real_img)
            (grad_real,) = autograd.grad(outputs=real_pred.sum(), inputs=real_img, create_graph=True)
            r1_loss = grad_real.pow(2).reshape(8, -1).sum(1).mean()
            discriminator.zero_grad()
            (R1 / 2 * r1_loss * EVERY + 0 * real_pred[0]).sum().backward()
            d_optim.step()

        requires_grad(generator, True)
        requires_grad(discriminator, False)
        g_loss = F.softplus(-discriminator(generator(torch.randn(8, 6)).view(8, 1, 6, 6))).mean()
        generator.zero_grad()
        g_loss.backward()
        g_optim.step()
        accumulate(g_ema, generator)
    return d_loss.item(), g_loss.item(), r1_loss.item()


gen = nn.Sequential(nn.Linear(6, 36), nn.Tanh(), nn.Linear(36, 36), nn.Sigmoid())
disc = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Softplus(), nn.Flatten(), nn.Linear(64, 1))
ema = copy.deepcopy(gen).eval()
print(train(gen, disc, ema, torch.optim.Adam(gen.parameters(), 2e-3), torch.optim.Adam(disc.parameters(), 2e-3)))
