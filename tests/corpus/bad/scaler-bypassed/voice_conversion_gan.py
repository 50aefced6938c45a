# A vocoder GAN: the discriminator goes through the scaler, the generator's optimizer is stepped past it.
# source: IAHispano/Applio#860
# expect: scaler-bypassed
import torch
from torch import nn

torch.manual_seed(1)
net_g = nn.Sequential(nn.Conv1d(2, 8, 3, padding=1), nn.LeakyReLU(0.1), nn.Conv1d(8, 1, 3, padding=1), nn.Tanh())
net_d = nn.Sequential(nn.Conv1d(1, 8, 5, stride=2), nn.LeakyReLU(0.1), nn.Conv1d(8, 1, 3))
optim_g = torch.optim.AdamW(net_g.parameters(), lr=1e-4, betas=(0.8, 0.99))
optim_d = torch.optim.AdamW(net_d.parameters(), lr=1e-4, betas=(0.8, 0.99))
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

for batch in range(12):
    spec = torch.randn(6, 2, 24)
    wave = torch.tanh(spec.sum(1, keepdim=True))
    y_hat = net_g(spec)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        d_real, d_fake = net_d(wave), net_d(y_hat.detach())
    loss_disc = ((1 - d_real.float()) ** 2).mean() + (d_fake.float() ** 2).mean()
    optim_d.zero_grad()
    scaler.scale(loss_disc).backward()
    scaler.step(optim_d)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        d_gen = net_d(y_hat)
    loss_gen = ((1 - d_gen.float()) ** 2).mean() + 10 * (wave - y_hat).abs().mean()
    optim_g.zero_grad()
    scaler.scale(loss_gen).backward()
    optim_g.step()  # <- scaler-bypassed, cause
    scaler.update()
    if batch % 4 == 0:
        print(f"loss_disc={loss_disc.item():.3f}, loss_gen={loss_gen.item():.3f}")
