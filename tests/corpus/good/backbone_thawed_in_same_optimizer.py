# One optimizer holds everything from the start; the backbone is frozen for two warm-up epochs and thawed in the third.
# Until then its parameters have no gradients and the optimizer passes them over.
# source: docs.pytorch.org/docs/stable/notes/autograd.html (setting requires_grad), airctic/icevision#966
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.backbone(x))


torch.manual_seed(245)
model = Net()
model.backbone.requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
x = torch.randn(256, 9)
y = x[:, :4].argmax(1)
for epoch in range(6):
    if epoch == 2:
        model.backbone.requires_grad_(True)
        for group in optimizer.param_groups:
            group["lr"] = 3e-3
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"epoch {epoch} loss {loss.item():.4f} trainable {trainable}")
