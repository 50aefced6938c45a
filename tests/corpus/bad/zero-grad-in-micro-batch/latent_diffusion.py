# Accumulation over four micro-batches, with zero_grad(set_to_none=True) inside the micro-batch loop.
# source: bytetriper/RAE#67
# expect: zero-grad-in-micro-batch
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
grad_accum_steps = 4
model = nn.Sequential(nn.Linear(17, 48), nn.SiLU(), nn.Linear(48, 16))
opt = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.95))
latents = torch.randn(512, 16)


def micro_batches(n=8):
    while True:
        yield latents[torch.randint(0, len(latents), (n,))]


loader = micro_batches()
for step in range(12):
    running = 0.0
    for _ in range(grad_accum_steps):
        x1 = next(loader)
        opt.zero_grad(set_to_none=True)  # <- zero-grad-in-micro-batch, cause
        t = torch.rand(x1.shape[0], 1)
        x0 = torch.randn_like(x1)
        xt = (1 - t) * x0 + t * x1
        v = model(torch.cat([xt, t], dim=1))
        loss = F.mse_loss(v, x1 - x0) / grad_accum_steps
        loss.backward()
        running += loss.item()
    opt.step()
    if step % 4 == 0:
        print(f"step {step} loss {running:.4f}")
