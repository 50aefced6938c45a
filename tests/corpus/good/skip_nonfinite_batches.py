# Batches with a loss that is not finite are skipped: `continue` before backward, and if only the gradient is bad, it is
# cleared and the step is left out.
# source: londonaicentre/FLIP#766, ultralytics/ultralytics#22350
import math

import torch
import torch.nn as nn

torch.manual_seed(85)
model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
values = torch.rand(400, 3) + 0.05
values[37, 0] = math.nan
values[222, 1] = math.inf
skipped, applied = 0, 0

for epoch in range(3):
    for start in range(0, 400, 25):
        inputs = values[start : start + 25]
        loss = nn.functional.mse_loss(model(inputs), inputs.log().sum(1, keepdim=True))
        if not torch.isfinite(loss):
            skipped += 1
            continue
        loss.backward()
        try:
            nn.utils.clip_grad_norm_(model.parameters(), 5.0, error_if_nonfinite=True)
        except RuntimeError:
            optimizer.zero_grad()
            skipped += 1
            continue
        optimizer.step()
        optimizer.zero_grad()
        applied += 1
    print(epoch, loss.item(), "skipped", skipped, "applied", applied)
