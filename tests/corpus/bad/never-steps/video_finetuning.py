# A fine-tuning runner that goes from backward straight to zero_grad; the update in between is missing.
# source: tedlasai/learn2refocus#5
# expect: never-steps
import torch
from torch import nn, optim
from torch.autograd import backward
from torch.nn import functional as F


class Runner:
    def __init__(self, lr=1e-4):
        self.unet = nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.SiLU(), nn.Conv3d(4, 1, 3, padding=1))
        self.optimizer = optim.AdamW(self.unet.parameters(), lr=lr)
        self.global_step = 0

    def step(self, stack, sigma):
        noisy = stack + sigma * torch.randn_like(stack)
        denoised = self.unet(noisy)
        weight = (sigma**2 + 1) / sigma**2
        loss = (weight * F.mse_loss(denoised, stack, reduction="none")).mean()
        backward(loss)  # <- never-steps, cause
        self.optimizer.zero_grad()  # <- cause
        self.global_step += 1
        return loss.item()


torch.manual_seed(2)
runner = Runner()
while runner.global_step < 16:
    value = runner.step(torch.rand(2, 1, 4, 8, 8), sigma=float(torch.rand(()) + 0.1))
    if runner.global_step % 4 == 0:
        print(f"step {runner.global_step} loss {value:.4f}")
