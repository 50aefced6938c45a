# Windows of four over eleven batches: the last window has three, is divided by three and is stepped, too.
# source: none (a common pattern, written small)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train_epoch(model, optimizer, loader, window=4):
    batches = len(loader)
    for index, (x, y) in enumerate(loader):
        first = index - index % window
        size = min(window, batches - first)
        loss = nn.functional.cross_entropy(model(x), y) / size
        loss.backward()
        if (index + 1) % window == 0 or index + 1 == batches:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


torch.manual_seed(6)
x = torch.randn(88, 6)
loader = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for _ in range(4):
    train_epoch(model, optimizer, loader)
