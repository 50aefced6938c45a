# The scheduler follows the validation loss: step(metric) once an epoch, and training stops early by a break.
# source: docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ReduceLROnPlateau.html
import torch
from torch import nn

torch.manual_seed(83)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.6)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", factor=0.3, patience=1)
x, w = torch.randn(90, 5), torch.randn(5, 1)
y = x @ w + 0.3 * torch.randn(90, 1)


def train_epoch():
    model.train()
    for i in range(0, 60, 6):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[i : i + 6]), y[i : i + 6]).backward()
        optimizer.step()


@torch.no_grad()
def validate():
    model.eval()
    return nn.functional.mse_loss(model(x[60:]), y[60:]).item()


for epoch in range(20):
    train_epoch()
    val_loss = validate()
    scheduler.step(val_loss)
    lr = scheduler.get_last_lr()[0]
    print(epoch, f"{val_loss:.4f} lr {lr:.5f}")
    if lr < 0.02:
        break
