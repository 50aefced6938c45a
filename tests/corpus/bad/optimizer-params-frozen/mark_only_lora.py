# LoRA: the whole model was frozen before a helper that only turns gradients off, never on; backward raises.
# source: microsoft/LoRA#125
# expect: optimizer-params-frozen
# raises: RuntimeError
import torch
import torch.nn.functional as F
from torch import nn


class LoRALinear(nn.Linear):
    def __init__(self, in_features, out_features, r=4):
        super().__init__(in_features, out_features)
        self.lora_A = nn.Parameter(torch.randn(r, in_features) / in_features**0.5)
        self.lora_B = nn.Parameter(torch.zeros(out_features, r))

    def forward(self, x):
        return super().forward(x) + x @ self.lora_A.T @ self.lora_B.T


def mark_only_lora_as_trainable(model):
    for n, p in model.named_parameters():
        if "lora_" not in n:  # <- cause
            p.requires_grad = False  # <- cause


torch.manual_seed(0)
model = nn.Sequential(LoRALinear(10, 20), nn.ReLU(), LoRALinear(20, 4))
model.requires_grad_(False)  # <- cause
mark_only_lora_as_trainable(model)
lora_params = [p for n, p in model.named_parameters() if "lora_" in n]
optimizer = torch.optim.AdamW(lora_params, lr=1e-3)  # <- optimizer-params-frozen

x = torch.randn(64, 10)
y = x[:, :4].argmax(1)
for step, batch in enumerate(torch.randperm(64).split(8)):
    loss = F.cross_entropy(model(x[batch]), y[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
