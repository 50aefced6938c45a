# A quantizer in a trainer: the rate term is made of the rounded latents, where noise should stand in for the rounding.
# source: none (a common mistake, written small)
# expect: loss-term-detached
import torch
from torch import nn


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.analysis, self.synthesis = nn.Linear(12, 4), nn.Linear(4, 12)

    def losses(self, x):
        latent = self.analysis(x)
        noisy = latent + torch.rand_like(latent) - 0.5
        symbols = torch.round(latent)  # <- cause
        rate = torch.log2(1 + symbols.abs()).mean()
        distortion = (self.synthesis(noisy) - x).pow(2).mean()
        return {"rate": rate, "distortion": distortion}


class Trainer:
    def __init__(self, codec, lmbda=20.0):
        self.codec, self.lmbda = codec, lmbda
        self.optimizer = torch.optim.Adam(codec.parameters(), lr=2e-3)

    def step(self, batch):
        out = self.codec.losses(batch)
        loss = out["rate"] + self.lmbda * out["distortion"]
        self.optimizer.zero_grad()
        loss.backward()  # <- loss-term-detached
        nn.utils.clip_grad_norm_(self.codec.parameters(), 1.0)
        self.optimizer.step()


torch.manual_seed(4)
trainer = Trainer(Codec())
for batch in torch.randn(30, 8, 12) * 3:
    trainer.step(batch)
