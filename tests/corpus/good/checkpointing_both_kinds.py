# Activation checkpointing, both kinds and the sequential helper: the backward runs parts of the forward once more.
# source: docs.pytorch.org/docs/stable/checkpoint.html
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(6, 24)
        self.first = nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 24), nn.ReLU(), nn.Dropout(0.1))
        self.second = nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 24), nn.ReLU())
        self.tail = nn.Sequential(*[nn.Sequential(nn.Linear(24, 24), nn.Tanh()) for _ in range(4)])
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        x = self.stem(x)
        x = x + checkpoint(self.first, x, use_reentrant=True)
        x = x + checkpoint(self.second, x, use_reentrant=False)
        x = checkpoint_sequential(self.tail, 2, x, use_reentrant=False)
        return self.head(x)


def main():
    torch.manual_seed(89)
    model = Net()
    optimizer = optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(40):
        x = torch.randn(32, 6)
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
        loss.backward()
        optimizer.step()
        if step % 13 == 0:
            print(step, f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
