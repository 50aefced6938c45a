# A step whose gradient norm is far above the running mean is left out, and its gradients are cleared all the same; the
# running mean takes no notice of it.
# source: karpathy/llm.c#711, facebookresearch/metaseq#521
import torch
from torch import nn

torch.manual_seed(238)
model = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
running_norm, skipped = None, 0
for step in range(150):
    x = torch.randn(16, 5)
    target = x.prod(1, keepdim=True) + x[:, :1]
    if step % 40 == 39:
        target = target + 1000.0
    loss = nn.functional.mse_loss(model(x), target)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()
    if running_norm is not None and norm > 20 * running_norm:
        skipped += 1
    else:
        optimizer.step()
        running_norm = norm if running_norm is None else 0.9 * running_norm + 0.1 * norm
    optimizer.zero_grad()
    if step % 30 == 0:
        print(f"step {step} loss {loss.item():.4f} norm {running_norm:.3f} skipped {skipped}")
