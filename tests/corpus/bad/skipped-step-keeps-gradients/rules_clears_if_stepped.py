# The gradients are only cleared when the scaler has taken the step: one overflow, and nothing is learnt any more.
# source: https://github.com/pytorch/pytorch/issues/67590 (nothing tells that the scaler has skipped a step)
# expect: skipped-step-keeps-gradients
import torch
from torch import nn

torch.manual_seed(12)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1000)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
for update in range(12):
    x = torch.randn(8, 5)
    if update == 4:
        x = x * 1e30
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(x).float(), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scale = scaler.get_scale()
    scaler.step(optimizer)  # <- skipped-step-keeps-gradients, cause
    scaler.update()
    if scaler.get_scale() >= scale:
        optimizer.zero_grad()  # <- cause
        scheduler.step()
    print(update, loss.item(), scaler.get_scale())
