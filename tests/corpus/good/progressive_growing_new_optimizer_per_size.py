# Progressive growing: at each resolution a block joins the network and a new optimizer is made over all of it, old
# blocks included; the new block is faded in.
# source: odegeasslbc/Progressive-GAN-pytorch train.py, arxiv.org/abs/1710.10196
import torch
from torch import nn
from torch.nn.functional import interpolate

torch.manual_seed(257)


class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(6, 8 * 16), nn.Unflatten(1, (8, 4, 4)), nn.LeakyReLU(0.2))
        self.blocks = nn.ModuleList()
        self.to_image = nn.ModuleList([nn.Conv2d(8, 1, 1)])

    def grow(self):
        self.blocks.append(nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(8, 8, 3, padding=1), nn.LeakyReLU(0.2)))
        self.to_image.append(nn.Conv2d(8, 1, 1))

    def forward(self, z, alpha):
        h = self.base(z)
        for block in self.blocks[:-1]:
            h = block(h)
        if not self.blocks:
            return self.to_image[0](h)
        small = interpolate(self.to_image[-2](h), scale_factor=2)
        return alpha * self.to_image[-1](self.blocks[-1](h)) + (1 - alpha) * small


codes = torch.randn(64, 6)
pictures = interpolate(torch.tanh(codes @ torch.randn(6, 16)).view(64, 1, 4, 4), scale_factor=4, mode="bilinear")
model = Growing()
for stage, size in enumerate((4, 8, 16)):
    if stage:
        model.grow()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.0, 0.99))
    target = interpolate(pictures, size=size, mode="area")
    for step in range(40):
        rows = torch.randint(0, 64, (16,))
        loss = nn.functional.mse_loss(model(codes[rows], min(1.0, step / 20)), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 39 == 0:
            print(f"{size} x {size} step {step} loss {loss.item():.4f}")
