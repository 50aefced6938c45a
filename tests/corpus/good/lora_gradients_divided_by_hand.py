# Low-rank adapters whose gradients are summed over a window and divided by hand: while B is zero, zeros of A's gradient
# are written to, and nothing has been cleared.
# source: huggingface/peft (LoRA, B starts at 0); the division after the sum as in facebookresearch/lingua
import torch
from torch import nn

torch.manual_seed(63)
base = nn.Linear(8, 8).requires_grad_(False)
lora_a, lora_b = nn.Parameter(torch.randn(2, 8) * 0.3), nn.Parameter(torch.zeros(8, 2))
optimizer = torch.optim.AdamW([lora_a, lora_b], lr=1e-2)
for update in range(8):
    for _ in range(4):
        x = torch.randn(16, 8)
        loss = nn.functional.mse_loss(base(x) + x @ lora_a.T @ lora_b.T, x.roll(1, 1))
        loss.backward()
    for p in (lora_a, lora_b):
        p.grad /= 4
    optimizer.step()
    optimizer.zero_grad()
    print(update, loss.item())
