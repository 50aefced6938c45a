# A Wasserstein GAN with gradient penalty: the helper calls autograd.grad without create_graph, so the penalty is added
# as a number.
# source: eriklindernoren/PyTorch-GAN wgan_gp.py, with the mistake put in
# expect: loss-term-detached
import numpy as np
import torch
import torch.autograd as autograd
from torch import nn
from torch.autograd import Variable

torch.manual_seed(0)
np.random.seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
lambda_gp, n_critic = 10, 3
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
Tensor = torch.FloatTensor


def compute_gradient_penalty(critic, real_samples, fake_samples):
    """Calculates the gradient penalty loss for WGAN GP."""
    alpha = Tensor(np.random.random((real_samples.size(0), 1)))
    interpolates = (alpha * real_samples + ((1 - alpha) * fake_samples)).requires_grad_(True)
    d_interpolates = critic(interpolates)
    fake = Variable(Tensor(real_samples.shape[0], 1).fill_(1.0), requires_grad=False)
    gradients = autograd.grad(  # <- cause
        outputs=d_interpolates,
        inputs=interpolates,
        grad_outputs=fake,
        retain_graph=True,
        only_inputs=True,  # <- cause
    )[0]
    gradients = gradients.view(gradients.size(0), -1)
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


for i in range(12):
    real_imgs = Variable(0.5 * torch.randn(16, 2) + 1)
    optimizer_d.zero_grad()
    z = Variable(Tensor(np.random.normal(0, 1, (16, 4))))
    fake_imgs = generator(z)
    real_validity = discriminator(real_imgs)
    fake_validity = discriminator(fake_imgs)
    gradient_penalty = compute_gradient_penalty(discriminator, real_imgs.data, fake_imgs.data)
    d_loss = -torch.mean(real_validity) + torch.mean(fake_validity) + lambda_gp * gradient_penalty
    d_loss.backward()  # <- loss-term-detached
    optimizer_d.step()
    optimizer_g.zero_grad()
    if i % n_critic == 0:
        fake_imgs = generator(z)
        g_loss = -torch.mean(discriminator(fake_imgs))
        g_loss.backward()
        optimizer_g.step()
        print(f"[Batch {i}] [D loss: {d_loss.item():.4f}] [G loss: {g_loss.item():.4f}]")
