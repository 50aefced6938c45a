# A triplet-loss training function that lost its backward line when the code was cleaned for publishing.
# source: aalto-intelligent-robotics/sivl#2
# expect: step-without-backward
import torch
from torch import nn
from torch.optim import Adam
from torch.utils.data import DataLoader, TensorDataset


def train_epoch(model, loader, optimizer, criterion, log_interval=3):
    model.train()
    running_loss = 0.0
    for i, (anchor, positive, negative) in enumerate(loader):
        model.zero_grad()
        loss = criterion(model(anchor), model(positive), model(negative))  # <- cause
        optimizer.step()  # <- step-without-backward, cause
        running_loss += loss.item()
        if i % log_interval == log_interval - 1:
            print(f"batch {i + 1} loss {running_loss / log_interval:.4f}")
            running_loss = 0.0


def main():
    torch.manual_seed(4)
    anchors = torch.randn(60, 16)
    triplets = TensorDataset(anchors, anchors + 0.3 * torch.randn(60, 16), torch.randn(60, 16))
    loader = DataLoader(triplets, batch_size=10, shuffle=True, drop_last=True)
    model = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 8))
    optimizer = Adam(model.parameters(), lr=1e-3)
    for _ in range(2):
        train_epoch(model, loader, optimizer, nn.TripletMarginLoss(margin=1.0))


main()
