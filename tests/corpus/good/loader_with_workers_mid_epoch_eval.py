# A loader with worker processes, and an evaluation in the middle of each epoch: eval() before it, train() after it.
# source: pytorch/examples imagenet/main.py, docs.pytorch.org/docs/stable/data.html (multi-process data loading)
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset, Subset


class Waves(Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        label = i % 3
        t = torch.linspace(0, 6.28, 24)
        return torch.sin(t * (label + 1)) + 0.3 * torch.randn(24, generator=generator), label


@torch.inference_mode()
def accuracy(model, loader):
    was_training = model.training
    model.eval()
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train(was_training)
    return right / len(loader.dataset)


def main():
    torch.manual_seed(92)
    data = Waves()
    train_loader = DataLoader(
        Subset(data, range(192)), batch_size=24, shuffle=True, num_workers=2, persistent_workers=True, prefetch_factor=2
    )
    val_loader = DataLoader(Subset(data, range(192, 240)), batch_size=48, num_workers=1)
    model = nn.Sequential(nn.Linear(24, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model.train()
    for epoch in range(2):
        for i, (x, y) in enumerate(train_loader):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i == 3:
                print(epoch, f"{loss.item():.4f} {accuracy(model, val_loader):.3f}")
    print(f"end {loss.item():.4f} {accuracy(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
