# torch.no_grad() stands as a statement of its own; training and validation call the model through one function.
# source: written for the rule: a validation that shares the function which calls the model
# expect: validation-builds-graph
# severity: hint (it costs memory and time; the numbers are right)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
data = torch.randn(80, 6)
dataset = TensorDataset(data, data.prod(1, keepdim=True))


def terms(x, y):
    error = model(x) - y
    return error.square().mean(), error.abs().mean()


def train_epoch(loader):
    model.train()
    for x, y in loader:
        square, _ = terms(x, y)
        optimizer.zero_grad()
        square.backward()
        optimizer.step()


def validate(loader):  # <- cause
    model.eval()
    torch.no_grad()  # <- cause
    total = 0.0
    for x, y in loader:  # <- cause
        _, absolute = terms(x, y)  # <- validation-builds-graph
        total += absolute.item()
    return total / len(loader)


for epoch in range(6):
    train_epoch(DataLoader(dataset, 16, shuffle=True))
    print(epoch, validate(DataLoader(dataset, 40)))
