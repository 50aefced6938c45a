# A constrained problem: one loss, one backward, and two optimizers of which the second goes uphill (maximize=True) on
# the multiplier of the constraint; the loss is not meant to fall.
# source: docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html (maximize)
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

torch.manual_seed(110)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
log_multiplier = torch.zeros((), requires_grad=True)
primal = torch.optim.Adam(model.parameters(), lr=5e-3)
dual = torch.optim.SGD([log_multiplier], lr=0.5, maximize=True)
for step in range(100):
    x = torch.randn(64, 6)
    group = x[:, 5] > 0
    y = ((x[:, 0] + 0.8 * x[:, 5]) > 0).float()
    logits = model(x).squeeze(1)
    rate = logits.sigmoid()
    violation = (rate[group].mean() - rate[~group].mean()).abs() - 0.1
    loss = bce(logits, y) + log_multiplier.exp() * violation
    primal.zero_grad()
    dual.zero_grad()
    loss.backward()
    primal.step()
    dual.step()
    if step % 25 == 24:
        print(step, f"violation {violation.item():.3f} multiplier {log_multiplier.exp().item():.3f}")
