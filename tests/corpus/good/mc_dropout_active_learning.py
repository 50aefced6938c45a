# Active learning with Monte-Carlo dropout: between rounds of training, the pool is scored under no_grad with the model
# left in train mode on purpose, because dropout is the measure of doubt.
# source: BlackHC/batchbald_redux batchbald_redux/active_learning.py, codegenes.net/blog/monte-carlo-dropout-pytorch
import torch
from torch import nn

torch.manual_seed(97)
pool = torch.randn(300, 2)
truth = ((pool[:, 0] * 1.5).sin() > pool[:, 1]).long()
labelled = list(range(12))
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def mc_predictions(x, samples=12):
    model.train()
    with torch.no_grad():
        return torch.stack([model(x).softmax(1) for _ in range(samples)])


for acquisition in range(5):
    model.train()
    for _ in range(15):
        rows = torch.tensor(labelled)[torch.randperm(len(labelled))[:12]]
        loss = nn.functional.cross_entropy(model(pool[rows]), truth[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    probs = mc_predictions(pool)
    mean = probs.mean(0)
    mutual = (probs * probs.log()).sum(2).mean(0) - (mean * mean.log()).sum(1)
    mutual[labelled] = -1
    labelled += mutual.topk(6).indices.tolist()
    accuracy = (mean.argmax(1) == truth).float().mean().item()
    print(acquisition, len(labelled), f"loss {loss.item():.3f} accuracy {accuracy:.3f}")
