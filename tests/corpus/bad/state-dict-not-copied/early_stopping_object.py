# An early-stopping object keeps the best state_dict() itself, and restore() loads it into the model that has moved on.
# source: none (a common mistake, written small)
# expect: state-dict-not-copied
import torch
from torch import nn


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.waited, self.state = patience, float("inf"), 0, None

    def better(self, loss, model):
        if loss < self.best:
            self.best, self.waited = loss, 0
            self.state = model.state_dict()  # <- cause
            return True
        self.waited += 1
        return self.waited <= self.patience

    def restore(self, model):
        model.load_state_dict(self.state)  # <- state-dict-not-copied


torch.manual_seed(7)
model = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
stopping = EarlyStopping(patience=2)
for _epoch in range(12):
    for x in torch.randn(5, 8, 4):
        optimizer.zero_grad()
        loss = (model(x) - torch.randn(8, 1)).square().mean()
        loss.backward()
        optimizer.step()
    if not stopping.better(loss.item(), model):
        break
stopping.restore(model)
