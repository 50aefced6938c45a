# BatchNorm stays in eval mode while the rest trains: train() is overridden, and the layers' affine parameters are
# frozen too.
# source: discuss.pytorch.org/t/25176 (frozen batch normalization still shows different performance in train mode)
import torch
from torch import nn, optim

torch.manual_seed(49)


class DeepLab(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.Conv2d(6, 6, 3, padding=1),
            nn.BatchNorm2d(6),
        )
        self.classifier = nn.Sequential(nn.ReLU(), nn.Dropout2d(0.1), nn.Conv2d(6, 2, 1))

    def forward(self, x):
        return self.classifier(self.backbone(x))

    def train(self, mode=True):
        super().train(mode)
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.eval()
                m.weight.requires_grad_(False)
                m.bias.requires_grad_(False)
        return self


model = DeepLab().train()
optimizer = optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.1, momentum=0.9)
for step in range(25):
    model.train()
    image = torch.rand(2, 1, 8, 8)
    mask = (image[:, 0] > 0.5).long()
    loss = nn.functional.cross_entropy(model(image), mask)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 8 == 0:
        model.eval()
        with torch.no_grad():
            print(step, f"{nn.functional.cross_entropy(model(image), mask).item():.4f}")
