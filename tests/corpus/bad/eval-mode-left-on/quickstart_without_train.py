# The quickstart shape: test() calls model.eval(), and train() never calls model.train().
# source: pytorch/tutorials#1624
# expect: eval-mode-left-on
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
x = torch.randn(160, 16)
y = x[:, :4].argmax(1)
train_dataloader = DataLoader(TensorDataset(x[:128], y[:128]), batch_size=32)
test_dataloader = DataLoader(TensorDataset(x[128:], y[128:]), batch_size=32)
model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Dropout(0.3), nn.Linear(48, 4))
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)


def train(dataloader, model, loss_fn, optimizer):
    for batch, (features, target) in enumerate(dataloader):  # <- cause
        pred = model(features)
        loss = loss_fn(pred, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if batch % 4 == 0:
            print(f"loss: {loss.item():>7f}")


def test(dataloader, model, loss_fn):
    model.eval()  # <- eval-mode-left-on
    test_loss, correct = 0, 0
    with torch.no_grad():
        for features, target in dataloader:
            pred = model(features)
            test_loss += loss_fn(pred, target).item()
            correct += (pred.argmax(1) == target).float().sum().item()
    print(f"Accuracy: {100 * correct / len(dataloader.dataset):>0.1f}%, Avg loss: {test_loss:>8f}")  # <- cause


for _t in range(4):
    train(train_dataloader, model, loss_fn, optimizer)  # <- cause
    test(test_dataloader, model, loss_fn)
