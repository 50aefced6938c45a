# A train step that makes its own GradScaler each time and never updates it: no error, and the scale never adapts.
# source: a common pattern; documented in https://docs.pytorch.org/docs/stable/notes/amp_examples.html#typical-mixed-precision-training
# expect: scaler-step-without-update
import torch
from torch import nn

torch.manual_seed(3)
model = nn.Sequential(nn.Linear(14, 40), nn.SiLU(), nn.Linear(40, 14))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
signals = torch.randn(120, 14)


def train_step(batch):
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**13)  # <- cause
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch + 0.1 * torch.randn_like(batch))
    loss = nn.functional.mse_loss(out.float(), batch)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)  # <- scaler-step-without-update, cause
    return loss.item()


for epoch in range(2):
    losses = [train_step(batch) for batch in signals.split(10)]
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}")
