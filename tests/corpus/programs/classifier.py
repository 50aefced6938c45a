# A classifier on a Dataset of its own, with worker processes, validation and a best checkpoint that is saved and
# loaded at the end.
# source: pytorch/examples imagenet/main.py
import argparse
import hashlib
import os
import random
import shutil
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset, random_split


class Shapes(Dataset):
    """Small pictures of three kinds: a bar across, a bar down, a cross."""

    def __init__(self, length, noise):
        self.length, self.noise = length, noise

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        label = index % 3
        row, column = torch.randint(1, 7, (2,), generator=generator).tolist()
        picture = torch.randn(1, 8, 8, generator=generator) * self.noise
        if label in (0, 2):
            picture[0, row] += 1
        if label in (1, 2):
            picture[0, :, column] += 1
        return picture, label


class ConvNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(2 * width * 4, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(self.dropout(torch.flatten(x, 1)))


class AverageMeter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


def accuracy(output, target):
    return (output.argmax(1) == target).float().mean().item() * 100


def train(loader, model, criterion, optimizer):
    losses, top1 = AverageMeter(), AverageMeter()
    model.train()
    for images, target in loader:
        output = model(images)
        loss = criterion(output, target)
        losses.update(loss.item(), images.size(0))
        top1.update(accuracy(output, target), images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses.avg, top1.avg


def validate(loader, model, criterion):
    losses, top1 = AverageMeter(), AverageMeter()
    model.eval()
    with torch.no_grad():
        for images, target in loader:
            output = model(images)
            losses.update(criterion(output, target).item(), images.size(0))
            top1.update(accuracy(output, target), images.size(0))
    return losses.avg, top1.avg


def digest(model):
    h = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        h.update(name.encode())
        h.update(value.detach().contiguous().numpy().tobytes())
    return h.hexdigest()


def save_checkpoint(state, is_best, folder):
    path = os.path.join(folder, "checkpoint.pth.tar")
    torch.save(state, path)
    if is_best:
        shutil.copyfile(path, os.path.join(folder, "model_best.pth.tar"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("-b", "--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("-j", "--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)

    train_set, val_set = random_split(Shapes(480, noise=0.3), [400, 80])
    train_loader = DataLoader(train_set, args.batch_size, shuffle=True, num_workers=args.workers, drop_last=True)
    val_loader = DataLoader(val_set, 40, num_workers=args.workers)
    model = ConvNet(width=8)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = StepLR(optimizer, step_size=2, gamma=0.3)
    best_acc1 = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(args.epochs):
            train_loss, train_acc = train(train_loader, model, criterion, optimizer)
            val_loss, acc1 = validate(val_loader, model, criterion)
            scheduler.step()
            is_best = acc1 > best_acc1
            best_acc1 = max(acc1, best_acc1)
            state = {"epoch": epoch + 1, "state_dict": model.state_dict(), "best_acc1": best_acc1}
            save_checkpoint({**state, "optimizer": optimizer.state_dict()}, is_best, folder)
            print(f"epoch {epoch} train {train_loss:.4f} {train_acc:.1f}% val {val_loss:.4f} {acc1:.1f}%")
        best = torch.load(os.path.join(folder, "model_best.pth.tar"), weights_only=True)
        model.load_state_dict(best["state_dict"])
    print(f"best {best['best_acc1']:.1f}% of epoch {best['epoch']}")
    print("digest:", digest(model))


if __name__ == "__main__":
    main()
