# One function runs both phases and asks for "val", where the loaders are called "train" and "valid".
# source: pytorch/tutorials transfer_learning_tutorial.py, its phases, with the mistake put in
# expect: validation-in-train-mode
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
inputs = torch.randn(160, 6)
labels = (inputs[:, 0] > 0).long()
dataloaders = {
    "train": DataLoader(TensorDataset(inputs[:120], labels[:120]), 20, shuffle=True),
    "valid": DataLoader(TensorDataset(inputs[120:], labels[120:]), 20),
}


def run_phase(phase):
    model.train(phase != "val")  # <- cause
    correct = 0
    for x, y in dataloaders[phase]:
        with torch.set_grad_enabled(phase == "train"):
            outputs = model(x)  # <- validation-in-train-mode
            loss = nn.functional.cross_entropy(outputs, y)
        if phase == "train":
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        correct += (outputs.argmax(1) == y).sum().item()
    return correct / len(dataloaders[phase].dataset)


for epoch in range(5):
    print(epoch, {phase: run_phase(phase) for phase in dataloaders})
