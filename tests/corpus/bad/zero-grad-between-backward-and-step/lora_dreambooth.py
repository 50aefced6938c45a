# Low-rank adapters on a frozen linear layer; zero_grad was put after backward and before step.
# source: cloneofsimo/lora#263
# expect: zero-grad-between-backward-and-step
import itertools

import torch
import torch.nn.functional as F
from torch import nn, optim


class LoraLinear(nn.Module):
    def __init__(self, base, r=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_down = nn.Linear(base.in_features, r, bias=False)
        self.lora_up = nn.Linear(r, base.out_features, bias=False)
        nn.init.zeros_(self.lora_up.weight)

    def forward(self, x):
        return self.base(x) + self.lora_up(self.lora_down(x))


def main():
    torch.manual_seed(5)
    unet = nn.Sequential(LoraLinear(nn.Linear(16, 32)), nn.SiLU(), LoraLinear(nn.Linear(32, 16)))
    lora_params = [p for p in unet.parameters() if p.requires_grad]
    optimizer = optim.Adam(lora_params, lr=1e-3)
    latents = torch.randn(64, 16)
    loader = torch.utils.data.DataLoader(latents, batch_size=8, shuffle=True)

    max_steps = 16
    for batch in itertools.islice(itertools.chain.from_iterable(itertools.repeat(loader)), max_steps):
        noise = torch.randn_like(batch)
        model_pred = unet(batch + noise)
        loss = F.mse_loss(model_pred.float(), noise.float(), reduction="mean")
        loss.backward()
        unet.zero_grad()  # <- zero-grad-between-backward-and-step, cause
        optimizer.step()
    print("lora_up norm", unet[0].lora_up.weight.norm().item())


main()
