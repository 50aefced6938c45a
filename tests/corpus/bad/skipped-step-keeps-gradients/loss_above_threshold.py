# An update with too large a loss is left out, and its gradients are not cleared: the next update applies them, too.
# source: NVIDIA/Megatron-LM#3460, its guard, in a loop that clears after the step
# expect: skipped-step-keeps-gradients
# severity: hint (a sum over several batches may be meant)
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 10), nn.Tanh(), nn.Linear(10, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
threshold = 100.0


def train_step(x, y):
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    if loss.item() <= threshold:  # <- cause
        optimizer.step()  # <- skipped-step-keeps-gradients
        optimizer.zero_grad()  # <- cause
    return loss.item()


for iteration in range(90):
    x = torch.randn(16, 5)
    y = x.sum(1, keepdim=True)
    if iteration % 17 == 3 or iteration == 30:
        y[0] += 120 * (-1) ** iteration
    last = train_step(x, y)
print(f"loss {last:.4f}")
