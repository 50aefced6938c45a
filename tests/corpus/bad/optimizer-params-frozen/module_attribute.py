# The encoder's own optimizer never moves it: "unfreezing" sets requires_grad on the module, not on its parameters.
# source: CSCYQJ/MICCAI23-ProtoContra-SFDA#18
# expect: optimizer-params-frozen
import torch
from torch import nn, optim

torch.manual_seed(1)


class UNetSmall(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.InstanceNorm2d(6, affine=True), nn.ReLU())
        self.outc = nn.Conv2d(6, 2, 1)

    def forward(self, x):
        return self.outc(self.encoder(x))


model = UNetSmall()
for param in model.encoder.parameters():
    param.requires_grad = False
optimizer_head = optim.Adam(model.outc.parameters(), lr=1e-2)
optimizer_encoder = optim.Adam(model.encoder.parameters(), lr=1e-3)  # <- optimizer-params-frozen
images = torch.randn(32, 1, 8, 8)
masks = (images[:, 0].abs() > 0.8).long()

for epoch in range(6):
    if epoch == 2:
        model.encoder.requires_grad = True  # <- cause
    for index in torch.randperm(32).split(8):
        optimizer_head.zero_grad()
        optimizer_encoder.zero_grad()
        loss = nn.functional.cross_entropy(model(images[index]), masks[index])
        loss.backward()
        optimizer_head.step()
        if epoch >= 2:
            optimizer_encoder.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
