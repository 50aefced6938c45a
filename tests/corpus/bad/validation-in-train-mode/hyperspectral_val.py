# A hyperspectral classifier with dropout and batch norm, whose val() uses no_grad but not eval().
# source: eecn/Hyperspectral-Classification#21
# expect: validation-in-train-mode
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


def train(net, optimizer, criterion, data_loader, epoch, val_loader):
    for e in range(1, epoch + 1):
        net.train()
        avg_loss = 0.0
        for data, target in data_loader:
            optimizer.zero_grad()
            output = net(data)
            loss = criterion(output, target)
            loss.backward()
            optimizer.step()
            avg_loss += loss.item()
        val_acc = val(net, val_loader)
        print(f"Train (epoch {e}/{epoch}) loss {avg_loss / len(data_loader):.4f} val acc {val_acc:.3f}")  # <- cause


def val(net, data_loader):
    accuracy, total = 0.0, 0.0  # <- cause
    for data, target in data_loader:  # <- cause
        with torch.no_grad():
            output = net(data)  # <- validation-in-train-mode, cause
            _, output = torch.max(output, dim=1)
            for pred, out in zip(output.view(-1), target.view(-1), strict=True):
                accuracy += out.item() == pred.item()
                total += 1
    return accuracy / total


torch.manual_seed(0)
spectra = torch.randn(90, 1, 24)
target = spectra[:, 0].reshape(90, 4, 6).mean(2).argmax(1)
net = nn.Sequential(
    nn.Conv1d(1, 8, 5), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.4), nn.Flatten(), nn.Linear(8 * 20, 4)
)
train_loader = DataLoader(TensorDataset(spectra[:60], target[:60]), batch_size=15, shuffle=True)
val_loader = DataLoader(TensorDataset(spectra[60:], target[60:]), batch_size=10)
train(net, optim.Adadelta(net.parameters(), lr=0.5), nn.CrossEntropyLoss(), train_loader, 4, val_loader)
