# A small classifier whose loop mentions optimizer.zero_grad without calling it.
# source: https://taourl.com/read-3032220.html
# expect: missing-zero-grad
import torch
from torch import nn
from torch.utils.data import DataLoader, random_split


def make_moons(n):
    angle = torch.rand(n) * torch.pi
    upper = torch.arange(n) % 2 == 0
    x = torch.where(upper, angle.cos(), 1 - angle.cos())
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
    return [(point, label) for point, label in zip(torch.stack([x, y], 1), upper.long(), strict=True)]


class MoonNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stack = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x):
        return self.stack(x)


torch.manual_seed(21)
train_set, test_set = random_split(make_moons(120), [100, 20])
train_loader, test_loader = DataLoader(train_set, batch_size=20, shuffle=True), DataLoader(test_set, batch_size=20)
net = MoonNet()
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

for epoch in range(4):
    net.train()
    for x, y in train_loader:
        optimizer.zero_grad  # noqa: B018  # <- cause
        loss = loss_fn(net(x), y)
        loss.backward()
        optimizer.step()  # <- missing-zero-grad
    net.eval()
    with torch.no_grad():
        correct = sum((net(x).argmax(1) == y).sum().item() for x, y in test_loader)
    print(f"epoch {epoch}: loss {loss.item():.4f}, {correct} of {len(test_set)} right")
