# Mixed precision: a batch whose gradient norm is no number is passed over by a continue, and update() with it.
# source: https://discuss.pytorch.org/t/unscale-has-already-been-called-on-this-optimizer/81301 (a skipped update())
# expect: scaler-step-without-update
# raises: RuntimeError
import math

import torch
from torch import nn

torch.manual_seed(12)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)
for step in range(12):
    x = torch.randn(8, 6)
    if step == 5:
        x = x * 1e30
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(x).float(), x[:, :1])
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)  # <- scaler-step-without-update
    if not math.isfinite(norm):  # <- cause
        print("skipped", step)
        continue  # <- cause
    scaler.update()
    print(step, loss.item())
