# The function that trains one epoch makes its own Adam, so the averages of the gradients start from zero each time.
# source: https://github.com/Wangyixinxin/ACN/issues/9 (a new Adam for every batch), here for every epoch
# expect: optimizer-remade
import torch
from torch import nn

torch.manual_seed(6)
x = torch.randn(80, 6)
y = x[:, :2].sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))


def train_one_epoch(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)  # <- optimizer-remade, cause
    total = 0.0
    for inputs, targets in zip(x.split(16), y.split(16), strict=True):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / 5


for epoch in range(6):
    print(epoch, train_one_epoch(model))
