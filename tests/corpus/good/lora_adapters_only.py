# Low-rank adapters: the original weights are frozen, only the names with lora_ learn, in bfloat16 weights around them.
# source: microsoft/LoRA loralib/utils.py (mark_only_lora_as_trainable)
import torch
from torch import nn


class LoRALinear(nn.Linear):
    def __init__(self, n_in, n_out, r=2):
        super().__init__(n_in, n_out)
        self.lora_a = nn.Parameter(torch.randn(r, n_in) * 0.1)
        self.lora_b = nn.Parameter(torch.zeros(n_out, r))

    def forward(self, x):
        return super().forward(x) + (x @ self.lora_a.t()) @ self.lora_b.t() * 2.0


def mark_only_lora_as_trainable(model):
    for n, p in model.named_parameters():
        if "lora_" not in n:
            p.requires_grad = False


torch.manual_seed(51)
model = nn.Sequential(LoRALinear(8, 32), nn.GELU(), LoRALinear(32, 4)).to(torch.bfloat16)
mark_only_lora_as_trainable(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
x = torch.randn(128, 8, dtype=torch.bfloat16)
y = (x[:, :4] + x[:, 4:]).argmax(1)
for epoch in range(6):
    for i in range(0, 128, 32):
        optimizer.zero_grad()
        out = model(x[i : i + 32])
        loss = nn.functional.cross_entropy(out.float(), y[i : i + 32])
        loss.backward()
        optimizer.step()
    print(epoch, f"{loss.item():.4f}", sum(p.grad is not None for p in model.parameters()))
