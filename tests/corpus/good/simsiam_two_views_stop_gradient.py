# SimSiam: two views through one network, each the detached target of the other; the predictor keeps a fixed learning
# rate through a flag in its parameter group.
# source: facebookresearch/simsiam main_simsiam.py and simsiam/builder.py
import math

import torch
from torch import nn

torch.manual_seed(55)


class SimSiam(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))
        self.predictor = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 16))

    def forward(self, x1, x2):
        z1, z2 = self.encoder(x1), self.encoder(x2)
        return self.predictor(z1), self.predictor(z2), z1.detach(), z2.detach()


def adjust_learning_rate(optimizer, init_lr, epoch, epochs=4):
    cur_lr = init_lr * 0.5 * (1.0 + math.cos(math.pi * epoch / epochs))
    for param_group in optimizer.param_groups:
        param_group["lr"] = init_lr if param_group.get("fix_lr") else cur_lr


model = SimSiam()
criterion = nn.CosineSimilarity(dim=1)
optim_params = [
    {"params": model.encoder.parameters(), "fix_lr": False},
    {"params": model.predictor.parameters(), "fix_lr": True},
]
optimizer = torch.optim.SGD(optim_params, 0.1, momentum=0.9)
for epoch in range(4):
    adjust_learning_rate(optimizer, 0.1, epoch)
    for _ in range(8):
        images = torch.randn(32, 8)
        views = [images + 0.2 * torch.randn_like(images) for _ in range(2)]
        p1, p2, z1, z2 = model(x1=views[0], x2=views[1])
        loss = -(criterion(p1, z2).mean() + criterion(p2, z1).mean()) * 0.5
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 4))
