# An energy-based model: samples come from Langevin steps on the input (autograd.grad, the network in eval mode) and
# a replay buffer; the loss is a difference of energies and is not meant to fall.
# source: wgrathwohl/JEM train_wrn_ebm.py
import torch
import torch.nn as nn

torch.manual_seed(104)
f = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
optim = torch.optim.Adam(f.parameters(), lr=2e-3, betas=(0.0, 0.999))
replay_buffer = torch.rand(512, 2) * 4 - 2


def sample_q(batch=64, n_steps=15, step_size=0.1, sigma=0.05):
    f.eval()
    inds = torch.randint(0, 512, (batch,))
    fresh = (torch.rand(batch, 1) < 0.05).float()
    x_k = (1 - fresh) * replay_buffer[inds] + fresh * (torch.rand(batch, 2) * 4 - 2)
    x_k = x_k.clone().requires_grad_(True)
    for _ in range(n_steps):
        f_prime = torch.autograd.grad(f(x_k).sum(), [x_k], retain_graph=True)[0]
        x_k.data += step_size * f_prime + sigma * torch.randn_like(x_k)
    f.train()
    final_samples = x_k.detach()
    replay_buffer[inds] = final_samples
    return final_samples


for i in range(40):
    angle = torch.rand(64) * 6.283
    x_p_d = torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(64, 2)
    x_q = sample_q()
    fp, fq = f(x_p_d), f(x_q)
    loss = -(fp.mean() - fq.mean()) + 0.05 * (fp.pow(2) + fq.pow(2)).mean()
    optim.zero_grad()
    loss.backward()
    optim.step()
    if i % 13 == 0:
        radius = x_q.norm(dim=1)
        print(i, f"loss {loss.item():.4f} radius {radius.mean().item():.3f} +- {radius.std().item():.3f}")
