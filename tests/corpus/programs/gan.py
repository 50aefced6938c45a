# A GAN on points of a ring: hinge losses, two discriminator updates for each generator update, spectral norm, an
# averaged generator, checkpoints of both.
# source: pytorch/examples dcgan/main.py, rosinality/stylegan2-pytorch train.py
import hashlib
import math
import tempfile
from argparse import ArgumentParser
from copy import deepcopy
from pathlib import Path

import torch
from torch import nn, optim
from torch.nn.functional import relu
from torch.nn.utils.parametrizations import spectral_norm


def ring(n):
    angle = torch.randint(0, 8, (n,)) * (2 * math.pi / 8)
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)


class Generator(nn.Module):
    def __init__(self, nz, ngf):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(nz, ngf),
            nn.BatchNorm1d(ngf),
            nn.ReLU(inplace=True),
            nn.Linear(ngf, ngf),
            nn.BatchNorm1d(ngf),
            nn.ReLU(inplace=True),
            nn.Linear(ngf, 2),
        )

    def forward(self, z):
        return self.main(z)


def make_discriminator(ndf):
    return nn.Sequential(
        spectral_norm(nn.Linear(2, ndf)),
        nn.LeakyReLU(0.2),
        spectral_norm(nn.Linear(ndf, ndf)),
        nn.LeakyReLU(0.2),
        spectral_norm(nn.Linear(ndf, 1)),
    )


def weights_init(m):
    if isinstance(m, nn.Linear) and not hasattr(m, "parametrizations"):
        nn.init.normal_(m.weight, 0.0, 0.1)
        nn.init.zeros_(m.bias)


class Trainer:
    def __init__(self, opt):
        self.opt = opt
        self.net_g = Generator(opt.nz, opt.width)
        self.net_g.apply(weights_init)
        self.net_d = make_discriminator(opt.width)
        self.ema = deepcopy(self.net_g).eval().requires_grad_(False)
        self.optim_g = optim.Adam(self.net_g.parameters(), lr=opt.lr, betas=(0.5, 0.999))
        self.optim_d = optim.Adam(self.net_d.parameters(), lr=2 * opt.lr, betas=(0.5, 0.999))

    def noise(self):
        return torch.randn(self.opt.batch, self.opt.nz)

    def discriminator_step(self):
        with torch.no_grad():
            fake = self.net_g(self.noise())
        self.optim_d.zero_grad(set_to_none=True)
        loss = relu(1 - self.net_d(ring(self.opt.batch))).mean() + relu(1 + self.net_d(fake)).mean()
        loss.backward()
        self.optim_d.step()
        return loss.item()

    def generator_step(self):
        self.net_g.zero_grad(set_to_none=True)
        loss = -self.net_d(self.net_g(self.noise())).mean()
        loss.backward()
        self.optim_g.step()
        with torch.no_grad():
            for averaged, p in zip(self.ema.parameters(), self.net_g.parameters(), strict=True):
                averaged.lerp_(p, 1 - self.opt.decay)
            for averaged, b in zip(self.ema.buffers(), self.net_g.buffers(), strict=True):
                averaged.copy_(b)
        return loss.item()

    @torch.no_grad()
    def evaluate(self, z):
        points = self.ema(z)
        return (points.norm(dim=1) - 1).abs().mean().item()


def digest(*models):
    h = hashlib.sha256()
    for model in models:
        for value in model.state_dict().values():
            h.update(value.cpu().contiguous().numpy().tobytes())
    return h.hexdigest()


def main(argv=None):
    parser = ArgumentParser()
    parser.add_argument("--niter", type=int, default=160, help="generator updates")
    parser.add_argument("--ndis", type=int, default=2, help="discriminator updates for each of them")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--nz", type=int, default=6)
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--decay", type=float, default=0.95)
    parser.add_argument("--manual-seed", type=int, default=1)
    opt = parser.parse_args(argv)
    torch.manual_seed(opt.manual_seed)
    trainer = Trainer(opt)
    fixed_noise = torch.randn(256, opt.nz)
    with tempfile.TemporaryDirectory() as outf:
        for it in range(opt.niter):
            for _ in range(opt.ndis):
                err_d = trainer.discriminator_step()
            err_g = trainer.generator_step()
            if it % 40 == 0:
                print(
                    f"[{it}/{opt.niter}] Loss_D {err_d:.4f} Loss_G {err_g:.4f} off {trainer.evaluate(fixed_noise):.4f}"
                )
                torch.save(trainer.net_g.state_dict(), Path(outf) / f"netG_iter_{it}.pth")
                torch.save(trainer.net_d.state_dict(), Path(outf) / f"netD_iter_{it}.pth")
        print(len(list(Path(outf).iterdir())), "checkpoints")
    print("digest:", digest(trainer.net_g, trainer.net_d, trainer.ema))


if __name__ == "__main__":
    main()
