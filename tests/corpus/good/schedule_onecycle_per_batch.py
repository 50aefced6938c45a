# OneCycle: the scheduler steps after every batch, momentum moves too.
# source: docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.OneCycleLR.html
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import OneCycleLR

torch.manual_seed(81)
epochs, steps_per_epoch = 3, 12
model = nn.Sequential(nn.Flatten(), nn.Linear(25, 30), nn.Hardswish(), nn.Linear(30, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = OneCycleLR(optimizer, max_lr=0.3, epochs=epochs, steps_per_epoch=steps_per_epoch)
for epoch in range(epochs):
    for _ in range(steps_per_epoch):
        image = torch.rand(32, 5, 5)
        loss = nn.functional.cross_entropy(model(image), image.sum(2).argmax(1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
    group = optimizer.param_groups[0]
    print(epoch, f"{loss.item():.3f} lr {group['lr']:.4f} momentum {group['momentum']:.3f}")
