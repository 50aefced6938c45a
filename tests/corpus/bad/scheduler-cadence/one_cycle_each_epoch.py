# An exercise with early stopping: OneCycleLR is set up for every batch but stepped once an epoch, so it hardly moves.
# source: ageron/handson-mlp#28
# expect: scheduler-cadence
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def evaluate(model, loader):
    model.eval()
    hits = count = 0
    with torch.no_grad():
        for x_batch, y_batch in loader:
            hits += (model(x_batch).argmax(dim=1) == y_batch).sum().item()
            count += len(y_batch)
    return hits / count


def train_with_early_stopping(model, optimizer, criterion, train_loader, valid_loader, n_epochs, patience, scheduler):
    best, patience_left = 0.0, patience
    for epoch in range(n_epochs):
        model.train()
        for x_batch, y_batch in train_loader:
            loss = criterion(model(x_batch), y_batch)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        accuracy = evaluate(model, valid_loader)
        scheduler.step()  # <- scheduler-cadence, cause
        print(f"Epoch {epoch + 1}/{n_epochs}, valid accuracy: {accuracy:.2%}, lr: {scheduler.get_last_lr()[0]:.6f}")
        patience_left = patience if accuracy > best else patience_left - 1
        best = max(best, accuracy)
        if patience_left == 0:
            break


torch.manual_seed(42)
X = torch.randn(200, 10)
y = X[:, :4].argmax(dim=1)
train_loader = DataLoader(TensorDataset(X[:160], y[:160]), batch_size=16, shuffle=True)
valid_loader = DataLoader(TensorDataset(X[160:], y[160:]), batch_size=40)
model = nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 4))
n_epochs = 8
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=1e-2, epochs=n_epochs, steps_per_epoch=len(train_loader)
)
train_with_early_stopping(model, optimizer, nn.CrossEntropyLoss(), train_loader, valid_loader, n_epochs, 5, scheduler)
