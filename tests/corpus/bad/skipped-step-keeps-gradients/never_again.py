# A guard against outliers returns before step() and zero_grad(): after the first outlier the norm only grows.
# source: NVIDIA/Megatron-LM#3460, the threshold, in a loop that clears after the step
# expect: skipped-step-keeps-gradients
# severity: hint (a sum over several batches may be meant)
# cause: not found (the step is left out by a continue above it)
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
applied = 0
for iteration in range(60):
    x = torch.randn(16, 5)
    y = x.sum(1, keepdim=True) + (500.0 if iteration == 25 else 0.0)
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    norm = nn.utils.get_total_norm([param.grad for param in model.parameters()])
    if norm > 20:  # <- cause
        continue  # <- cause
    optimizer.step()  # <- skipped-step-keeps-gradients
    optimizer.zero_grad()  # <- cause
    applied += 1
print(f"applied {applied} of 60, loss {loss.item():.4f}")
