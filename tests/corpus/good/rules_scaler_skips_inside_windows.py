# The scaler skips some steps of windows of two micro-batches; the gradients are cleared whatever it did.
# source: https://docs.pytorch.org/docs/stable/notes/amp_examples.html (gradient accumulation)
import torch
from torch import nn

torch.manual_seed(13)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1000)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
for number in range(24):
    x = torch.randn(8, 5)
    if number in (6, 13):
        x = x * 1e30
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)) / 2
    scaler.scale(loss).backward()
    if number % 2 == 1:
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() >= scale:
            scheduler.step()
        optimizer.zero_grad()
print(scaler.get_scale())
