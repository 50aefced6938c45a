# StepLR that counts batches on purpose, in a loop over batches in a loop over epochs, and a cosine over each epoch.
# source: https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.StepLR.html
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR

torch.manual_seed(5)
x = torch.randn(120, 5)
batches = list(zip(x.split(12), x.sum(1, keepdim=True).split(12), strict=True))
EPOCHS = 6
for make in (
    lambda optimizer: StepLR(optimizer, step_size=EPOCHS * len(batches) // 3, gamma=0.1),
    lambda optimizer: CosineAnnealingLR(optimizer, T_max=len(batches)),
):
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scheduler = make(optimizer)
    for _epoch in range(EPOCHS):
        for inputs, targets in batches:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            scheduler.step()
    print(loss.item(), scheduler.get_last_lr())
