# pytorch-metric-learning: an ArcFace loss with weights and an optimizer of its own, and mined triplets.
import hashlib

import torch
from pytorch_metric_learning import losses, miners
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    labels = torch.arange(4).repeat(40)
    x = torch.randn(4, 8)[labels] + 0.5 * torch.randn(160, 8)
    trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
    arcface = losses.ArcFaceLoss(num_classes=4, embedding_size=4)
    triplet, miner = losses.TripletMarginLoss(margin=0.1), miners.TripletMarginMiner(0.1, "hard")
    trunk_optimizer = torch.optim.Adam(trunk.parameters(), lr=3e-3)
    loss_optimizer = torch.optim.SGD(arcface.parameters(), lr=0.1)
    for epoch in range(6):
        total = 0.0
        for inputs, targets in DataLoader(TensorDataset(x, labels), 32, shuffle=True):
            trunk_optimizer.zero_grad()
            loss_optimizer.zero_grad()
            embeddings = trunk(inputs)
            loss = arcface(embeddings, targets) + triplet(embeddings, targets, miner(embeddings, targets))
            loss.backward()
            trunk_optimizer.step()
            loss_optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total:.2f}")
    weights = b"".join(value.detach().numpy().tobytes() for value in [*trunk.parameters(), *arcface.parameters()])
    print("digest:", hashlib.sha256(weights).hexdigest())


if __name__ == "__main__":
    main()
