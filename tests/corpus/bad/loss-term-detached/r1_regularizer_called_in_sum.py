# R1 regularization of a discriminator: the gradient at real images has no graph, and its square is added to the loss by
# a call in the middle of the sum.
# source: LMescheder/GAN_stability gan_training/train.py (compute_grad2), with the mistake put in
# expect: loss-term-detached
import torch
import torch.nn.functional as F
from torch import autograd, nn


def compute_grad2(d_out, x_in):
    batch_size = x_in.size(0)
    grad_dout = autograd.grad(outputs=d_out.sum(), inputs=x_in, retain_graph=True, only_inputs=True)[0]  # <- cause
    return grad_dout.pow(2).view(batch_size, -1).sum(1)


class Trainer:
    def __init__(self, generator, discriminator, reg_param=10.0):
        self.generator, self.discriminator, self.reg_param = generator, discriminator, reg_param
        self.g_optimizer = torch.optim.RMSprop(generator.parameters(), lr=1e-3, alpha=0.99)
        self.d_optimizer = torch.optim.RMSprop(discriminator.parameters(), lr=1e-3, alpha=0.99)

    def discriminator_trainstep(self, x_real, z):
        self.d_optimizer.zero_grad()
        x_real.requires_grad_()
        d_real = self.discriminator(x_real)
        with torch.no_grad():
            x_fake = self.generator(z)
        d_fake = self.discriminator(x_fake)
        dloss = F.softplus(-d_real).mean() + F.softplus(d_fake).mean()
        dloss = dloss + self.reg_param * compute_grad2(d_real, x_real).mean()
        dloss.backward()  # <- loss-term-detached
        self.d_optimizer.step()
        return dloss.item()

    def generator_trainstep(self, z):
        self.g_optimizer.zero_grad()
        gloss = F.softplus(-self.discriminator(self.generator(z))).mean()
        gloss.backward()
        self.g_optimizer.step()
        return gloss.item()


torch.manual_seed(3)
generator = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
trainer = Trainer(generator, discriminator)
for it in range(15):
    gloss = trainer.generator_trainstep(torch.randn(12, 3))
    dloss = trainer.discriminator_trainstep(torch.randn(12, 2) * 0.3 + 1, torch.randn(12, 3))
    if it % 5 == 0:
        print(f"[it {it}] g_loss = {gloss:.4f}, d_loss = {dloss:.4f}")
