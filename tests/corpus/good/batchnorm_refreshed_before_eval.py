# Before each evaluation the statistics of BatchNorm are computed anew: reset, a pass over training batches in train
# mode under no_grad, then eval(). The dropout beside it is kept out of the refresh.
# source: facebookresearch/fvcore fvcore/nn/precise_bn.py, facebookresearch/SlowFast#44
import torch
from torch import nn

torch.manual_seed(236)
x = torch.randn(300, 1, 12).cumsum(-1)
y = (x[:, 0, -1] > 0).long()
model = nn.Sequential(
    nn.Conv1d(1, 8, 3),
    nn.BatchNorm1d(8),
    nn.ReLU(),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(80, 16),
    nn.BatchNorm1d(16),
    nn.ReLU(),
    nn.Linear(16, 2),
)
norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d)]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


@torch.no_grad()
def refresh(batches):
    momenta = [bn.momentum for bn in norms]
    for bn in norms:
        bn.reset_running_stats()
        bn.momentum = None
        bn.train()
    for batch in batches:
        model(batch)
    for bn, momentum in zip(norms, momenta, strict=True):
        bn.momentum = momentum


for epoch in range(5):
    model.train()
    for rows in torch.randperm(240).split(24):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    refresh(x[:240].split(60))
    model.eval()
    with torch.no_grad():
        accuracy = (model(x[240:]).argmax(1) == y[240:]).float().mean().item()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy:.3f}")
