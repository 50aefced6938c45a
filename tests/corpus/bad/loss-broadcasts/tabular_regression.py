# Plain regression: the model returns (N, 1), the loader's targets are (N,), and the loss compares all with all.
# source: pytorch/pytorch#16045
# expect: loss-broadcasts
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def train_epoch(model, dl, opt, loss_func):
    model.train()
    for xb, yb in dl:
        loss = loss_func(model(xb), yb)  # <- loss-broadcasts, cause
        loss.backward()
        opt.step()
        opt.zero_grad()
    return loss.item()


torch.manual_seed(0)
x = torch.randn(120, 5)
y = x @ torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0]) + 0.1 * torch.randn(120)  # <- cause
train_dl = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)  # <- cause
model = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 1))  # <- cause
opt = optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    print(epoch, train_epoch(model, train_dl, opt, nn.MSELoss()))
