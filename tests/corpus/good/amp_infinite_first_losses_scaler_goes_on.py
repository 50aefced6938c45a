# Mixed precision that starts with an overflow: some losses are infinite in float16, the scaler leaves these steps out
# and halves its scale, zero_grad() clears whatever came, and the training goes on; later the scale grows and overflows
# again.
# source: facebookresearch/swav#47, docs.pytorch.org/docs/stable/notes/amp_examples.html
import torch
from torch import nn

torch.manual_seed(242)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=2e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=12)
x = torch.randn(256, 16)
y = x[:, :4].sum(1, keepdim=True)
infinite, skipped = 0, 0
for step in range(80):
    rows = torch.randint(0, 256, (32,))
    inputs = x[rows] * (2000.0 if step in (1, 2) else 1.0)
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.float16):
        prediction = model(inputs)
        loss = (prediction - y[rows].half()).square().mean()
    infinite += int(not torch.isfinite(loss))
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    scale = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    skipped += int(scaler.get_scale() < scale)
    if step % 16 == 0:
        print(f"{step} loss {loss.item():.4f} scale {scale:.0f} infinite {infinite} skipped {skipped}")
