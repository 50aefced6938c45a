# Adversarial distillation: the student's loss runs through the discriminator, whose gradients are not cleared.
# source: leffff/FlowModels#3
# expect: foreign-gradients-in-step
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(1)
teacher = nn.Sequential(nn.Linear(9, 24), nn.SiLU(), nn.Linear(24, 8)).requires_grad_(False)
student_unet = nn.Sequential(nn.Linear(9, 24), nn.SiLU(), nn.Linear(24, 8))
discriminator = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 1))
student_optimizer = optim.AdamW(student_unet.parameters(), lr=1e-3)
discriminator_optimizer = optim.AdamW(discriminator.parameters(), lr=1e-3)

for step in range(18):
    x_0, t = torch.randn(16, 8), torch.rand(16, 1)  # <- cause
    with torch.no_grad():
        real = x_0 + (1 - t) * teacher(torch.cat([x_0, t], 1))
    fake = x_0 + (1 - t) * student_unet(torch.cat([x_0, t], 1))

    discriminator_loss = F.relu(1 - discriminator(real)).mean() + F.relu(1 + discriminator(fake.detach())).mean()
    discriminator_loss.backward()  # <- cause
    clip_grad_norm_(discriminator.parameters(), 1.0)
    discriminator_optimizer.step()  # <- foreign-gradients-in-step, cause
    discriminator_optimizer.zero_grad()  # <- cause

    student_loss = -discriminator(fake).mean() + F.mse_loss(fake, real)
    student_loss.backward()  # <- cause
    clip_grad_norm_(student_unet.parameters(), 1.0)
    student_optimizer.step()
    student_optimizer.zero_grad()
    if step % 6 == 0:
        print(f"{step} d {discriminator_loss.item():.3f} s {student_loss.item():.3f}")
