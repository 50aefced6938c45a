# Gradient accumulation with an epoch that does not divide evenly: the last, shorter window is divided by its own length
# and stepped at the end of the epoch.
# source: ml-explore/mlx-lm#1413 (the final partial window is applied instead of dropped), meta-pytorch/torchtune#2745
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(66)
x = torch.randn(220, 6)
loader = DataLoader(TensorDataset(x, x @ torch.randn(6, 1)), batch_size=10, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
accumulation_steps = 4
leftover = len(loader) % accumulation_steps

for epoch in range(4):
    for i, (inputs, targets) in enumerate(loader):
        in_last_window = i >= len(loader) - leftover
        window = leftover if in_last_window else accumulation_steps
        loss = nn.functional.mse_loss(model(inputs), targets)
        (loss / window).backward()
        if (i + 1) % accumulation_steps == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
