# A cosine over the epochs whose step() slipped into the loop over batches: the learning rate swings ten times.
# source: https://github.com/ivadomed/ivadomed/issues/57 ("updated the LR at each batch instead of each epoch")
# expect: scheduler-cadence
import torch
from torch import nn

torch.manual_seed(3)
EPOCHS = 6
x = torch.randn(160, 5)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)


def train_epoch():
    total = 0.0
    for inputs, targets in zip(x.split(16), y.split(16), strict=True):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        scheduler.step()  # <- scheduler-cadence, cause
        total += loss.item()
    return total / 10


for epoch in range(EPOCHS):
    print(epoch, train_epoch(), scheduler.get_last_lr())
