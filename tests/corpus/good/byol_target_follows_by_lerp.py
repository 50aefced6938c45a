# BYOL: the online network predicts the detached projection of a target network, which no optimizer knows and which
# follows by lerp_ after every step.
# source: lucidrains/byol-pytorch byol_pytorch/byol_pytorch.py
import copy

import torch
from torch import nn
from torch.nn.functional import normalize

torch.manual_seed(233)
online = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8))
predictor = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8))
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.Adam([*online.parameters(), *predictor.parameters()], lr=3e-3)
centres = 2 * torch.randn(6, 10)


def view(x):
    return x + 0.4 * torch.randn_like(x)


def loss_fn(p, z):
    return 2 - 2 * (normalize(p, dim=-1) * normalize(z, dim=-1)).sum(-1)


for step in range(80):
    x = centres[torch.randint(0, 6, (48,))]
    one, two = view(x), view(x)
    prediction_one, prediction_two = predictor(online(one)), predictor(online(two))
    with torch.no_grad():
        projection_one, projection_two = target(one), target(two)
    loss = (loss_fn(prediction_one, projection_two) + loss_fn(prediction_two, projection_one)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
            slow.lerp_(fast, 0.03)
    if step % 20 == 0:
        print(step, loss.item())
