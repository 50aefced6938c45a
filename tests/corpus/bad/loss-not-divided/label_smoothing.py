# Micro-batches whose mean losses have label smoothing; only the number that is logged is divided.
# source: written for the rule: cross_entropy that is made of two terms by its label smoothing
# expect: loss-not-divided
# severity: hint (a smaller learning rate makes up for it)
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
accumulation = 4


def run_window():
    logged = 0.0
    optimizer.zero_grad()
    for _ in range(accumulation):
        x = torch.randn(8, 6)
        loss = criterion(model(x), x[:, :4].argmax(1))  # <- cause
        loss.backward()  # <- loss-not-divided, cause
        logged += loss.item() / accumulation
    optimizer.step()
    return logged


for _ in range(20):
    last = run_window()
print(f"loss {last:.4f}")
