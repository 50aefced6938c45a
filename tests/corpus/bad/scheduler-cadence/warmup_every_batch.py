# Accumulation over four batches with a linear warm-up and decay that is advanced on every batch.
# source: Lightning-AI/pytorch-lightning#1476
# expect: scheduler-cadence
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(0)
accumulate_grad_batches, warmup_steps, total_steps = 4, 3, 12
model = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = LambdaLR(
    optimizer, lambda s: min((s + 1) / warmup_steps, max(0.0, (total_steps - s) / (total_steps - warmup_steps)))
)
x = torch.randn(192, 10)
y = x[:, :5].argmax(1)
batches = list(zip(x.split(4), y.split(4), strict=True))

for batch_idx, (inputs, labels) in enumerate(batches):
    loss = nn.functional.cross_entropy(model(inputs), labels)
    (loss / accumulate_grad_batches).backward()
    if (batch_idx + 1) % accumulate_grad_batches == 0:
        optimizer.step()
        optimizer.zero_grad()
    scheduler.step()  # <- scheduler-cadence, cause
    if batch_idx % 8 == 0:
        print(f"batch {batch_idx} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.5f}")
