# Two schedulers on one optimizer, both stepped after each epoch, their factors multiply; in a second phase another one
# is given fractions of an epoch after every batch.
# source: docs.pytorch.org/docs/stable/optim.html (How to adjust learning rate: schedulers back-to-back)
# and docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingWarmRestarts.html
import torch
from torch import nn
from torch.optim import SGD
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts, ExponentialLR, MultiStepLR

torch.manual_seed(109)
model = nn.Linear(8, 3)
x = torch.randn(120, 8)
dataset = list(zip(x.split(20), (x[:, :3] - x[:, 3:6]).argmax(1).split(20), strict=True))
loss_fn = nn.CrossEntropyLoss()


def train_one_epoch(optimizer, after_batch=lambda i: None):
    for i, (inp, target) in enumerate(dataset):
        optimizer.zero_grad()
        loss = loss_fn(model(inp), target)
        loss.backward()
        optimizer.step()
        after_batch(i)
    return loss.item()


optimizer = SGD(model.parameters(), lr=0.5, momentum=0.9)
scheduler1 = ExponentialLR(optimizer, gamma=0.9)
scheduler2 = MultiStepLR(optimizer, milestones=[3, 8], gamma=0.1)
for epoch in range(5):
    loss = train_one_epoch(optimizer)
    scheduler1.step()
    scheduler2.step()
    print(epoch, f"{loss:.4f}", optimizer.param_groups[0]["lr"])

optimizer = SGD(model.parameters(), lr=0.2)
scheduler = CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=1)
for epoch in range(4):
    loss = train_one_epoch(optimizer, lambda i, epoch=epoch: scheduler.step(epoch + i / len(dataset)))
    print(epoch, f"{loss:.4f}", scheduler.get_last_lr())
