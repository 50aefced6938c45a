# A long healthy loop with a guard that leaves out a step now and then, and the clearing with it.
# source: NVIDIA/Megatron-LM#3460, its guard, in a loop that clears after the step
# expect: skipped-step-keeps-gradients
# severity: hint (a sum over several batches may be meant)
# cause: not found (the step is left out by a continue above it)
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
outliers = {130, 220, 225, 390}
optimizer.zero_grad()
for iteration in range(450):
    x = torch.randn(16, 6)
    y = x[:, :1] * x[:, 1:2] + (50.0 if iteration in outliers else 0.0)
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    if loss.item() > 100:  # <- cause
        continue  # <- cause
    optimizer.step()  # <- skipped-step-keeps-gradients
    optimizer.zero_grad()  # <- cause
print(f"loss {loss.item():.4f}")
