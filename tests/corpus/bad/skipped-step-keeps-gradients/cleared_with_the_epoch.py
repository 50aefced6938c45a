# A guard leaves out steps and clearings; zero_grad() at the end of each epoch clears what has piled up by then.
# source: NVIDIA/Megatron-LM#3460, its guard, in a loop that clears after the step and after the epoch
# expect: skipped-step-keeps-gradients
# severity: hint (a sum over several batches may be meant)
# cause: not found (the step is left out by a continue above it)
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(4):
    for batch in range(20):
        x = torch.randn(16, 5)
        y = x.sum(1, keepdim=True) + (500.0 if batch == 9 and epoch % 2 else 0.0)
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        norm = nn.utils.get_total_norm([param.grad for param in model.parameters()])
        if norm > 20:  # <- cause
            continue  # <- cause
        optimizer.step()  # <- skipped-step-keeps-gradients
        optimizer.zero_grad()  # <- cause
    optimizer.zero_grad()
    print(f"epoch {epoch} loss {loss.item():.4f}")
