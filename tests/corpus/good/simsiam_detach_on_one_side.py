# SimSiam: both views go through one net, and each one's projection is detached where it is the other's target.
# source: none (a common pattern, written small)
import torch
from torch import nn


class SimSiam(nn.Module):
    def __init__(self, dim=6, width=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, width), nn.ReLU(), nn.Linear(width, width))
        self.predictor = nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, width))

    def forward(self, one, two):
        z1, z2 = self.encoder(one), self.encoder(two)
        p1, p2 = self.predictor(z1), self.predictor(z2)
        return p1, p2, z1.detach(), z2.detach()


torch.manual_seed(13)
model = SimSiam()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
criterion = nn.CosineSimilarity(dim=1)
for x in torch.randn(50, 16, 6):
    p1, p2, z1, z2 = model(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
    loss = -(criterion(p1, z2).mean() + criterion(p2, z1).mean()) * 0.5
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
