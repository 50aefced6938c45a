# A VAE-like trainer whose test() ends with its no_grad block; train() never switches back.
# source: pytorch/examples vae/main.py, with its model.train() left out
# expect: eval-mode-left-on
import torch
from torch import nn, optim

torch.manual_seed(6)


class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(20, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.1))
        self.decode = nn.Linear(12, 20)

    def forward(self, x):
        return self.decode(self.encode(x))


model = AE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)
data = torch.rand(120, 20)
train_loader, test_loader = data[:90].split(15), data[90:].split(15)


def train(epoch):
    train_loss = 0  # <- cause
    for batch in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch), batch)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(train_loader):.4f}")


def test(epoch):
    model.eval()  # <- eval-mode-left-on
    test_loss = 0
    with torch.no_grad():
        for batch in test_loader:
            test_loss += nn.functional.mse_loss(model(batch), batch).item()


for epoch in range(1, 4):
    train(epoch)  # <- cause
    test(epoch)
