# Gradients are clipped while they are still scaled; the optimizer is passed to step() by its keyword.
# source: none (a common mistake, written small)
# expect: clip-before-unscale
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
sgd = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(12):
    x = torch.randn(16, 8)
    sgd.zero_grad()
    scaler.scale(nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))).backward()  # <- cause
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- clip-before-unscale, cause
    scaler.step(optimizer=sgd)
    scaler.update()
