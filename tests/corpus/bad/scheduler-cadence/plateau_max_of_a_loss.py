# A loop that once followed an F1 score now follows the validation loss, still with mode="max".
# source: none (a common mistake, written small)
# expect: scheduler-cadence
# severity: hint (what the metric means is told by its name only)
import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau


def run(model, data, epochs=8):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    plateau = ReduceLROnPlateau(optimizer, mode="max", patience=0)  # <- cause
    history = {}
    for _epoch in range(epochs):
        for x in data:
            optimizer.zero_grad()
            (model(x) - x[:, 1:2]).square().mean().backward()
            optimizer.step()
        with torch.no_grad():
            history["val_loss"] = torch.stack([(model(x) - x[:, 1:2]).square().mean() for x in data]).mean()
        plateau.step(metrics=history["val_loss"])  # <- scheduler-cadence


torch.manual_seed(3)
run(nn.Linear(5, 1), torch.randn(6, 16, 5))
