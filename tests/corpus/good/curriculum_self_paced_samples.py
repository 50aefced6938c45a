# Self-paced learning: after a first epoch over everything, samples whose detached loss is above a threshold are left
# out, the threshold rises, and batches without any easy sample are skipped; the loader is made anew each epoch with a
# larger batch.
# source: https://neuralnetworklexicon.com/training-and-optimization/self-paced-learning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(267)
x = torch.randn(320, 8)
y = (x[:, 0] > 0).long()
wrong = torch.rand(320) < 0.15
y[wrong] = 1 - y[wrong]
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
threshold = float("inf")
for epoch in range(8):
    used = 0
    for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=8 * (1 + epoch), shuffle=True):
        losses = nn.functional.cross_entropy(model(inputs), labels, reduction="none")
        easy = (losses.detach() < threshold).float()
        if easy.sum() == 0:
            continue
        loss = (easy * losses).sum() / easy.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        used += int(easy.sum())
    threshold = 0.5 + 0.1 * epoch
    print(epoch, f"loss {loss.item():.4f} samples used {used}")
