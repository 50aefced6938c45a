# Lightning's manual optimization: a GAN with two optimizers, as in Lightning's documentation.
import hashlib
import logging

import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader


class GAN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def training_step(self, real, index):
        opt_g, opt_d = self.optimizers()
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)

        self.toggle_optimizer(opt_d)
        fake = self.generator(torch.randn(len(real), 4)).detach()
        loss_d = F.binary_cross_entropy_with_logits(self.discriminator(real), ones)
        loss_d = loss_d + F.binary_cross_entropy_with_logits(self.discriminator(fake), zeros)
        opt_d.zero_grad()
        self.manual_backward(loss_d)
        opt_d.step()
        self.untoggle_optimizer(opt_d)

        self.toggle_optimizer(opt_g)
        fake = self.generator(torch.randn(len(real), 4))
        loss_g = F.binary_cross_entropy_with_logits(self.discriminator(fake), ones)
        opt_g.zero_grad()
        self.manual_backward(loss_g)
        opt_g.step()
        self.untoggle_optimizer(opt_g)
        self.log_dict({"g": loss_g, "d": loss_d})

    def configure_optimizers(self):
        opt_g = torch.optim.Adam(self.generator.parameters(), lr=1e-3)
        opt_d = torch.optim.Adam(self.discriminator.parameters(), lr=1e-3)
        return [opt_g, opt_d]


def main():
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    L.seed_everything(0, verbose=False)
    points = F.normalize(torch.randn(512, 2))
    gan = GAN()
    off = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    L.Trainer(max_epochs=3, accelerator="cpu", **off).fit(gan, DataLoader(points, 32, shuffle=True))
    weights = b"".join(value.numpy().tobytes() for value in gan.state_dict().values())
    print("digest:", hashlib.sha256(weights).hexdigest())


if __name__ == "__main__":
    main()
