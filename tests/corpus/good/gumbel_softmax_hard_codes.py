# Discrete latents by straight-through Gumbel softmax, with a temperature that falls every few steps.
# source: docs.pytorch.org/docs/stable/generated/torch.nn.functional.gumbel_softmax.html, arxiv.org/abs/1611.01144
import torch
from torch import nn
from torch.nn.functional import gumbel_softmax, log_softmax

torch.manual_seed(59)
enc, dec = nn.Linear(12, 4 * 3), nn.Linear(4 * 3, 12)
opt = torch.optim.Adam(list(enc.parameters()) + list(dec.parameters()), lr=2e-2)
patterns = (torch.rand(9, 12) > 0.5).float()
tau = 1.0
for step in range(1, 101):
    x = patterns[torch.randint(0, 9, (24,))]
    logits = enc(x).view(-1, 4, 3)
    code = gumbel_softmax(logits, tau=tau, hard=True, dim=-1)
    x_hat = dec(code.flatten(1))
    log_q = log_softmax(logits, -1)
    kld = (log_q.exp() * (log_q + torch.log(torch.tensor(3.0)))).sum((1, 2)).mean()
    bce = nn.functional.binary_cross_entropy_with_logits(x_hat, x, reduction="sum") / len(x)
    opt.zero_grad(set_to_none=True)
    (bce + 0.05 * kld).backward()
    opt.step()
    if step % 25 == 0:
        tau = max(tau * 0.8, 0.5)
        print(step, f"bce {bce.item():.3f} kld {kld.item():.3f} tau {tau:.2f}")
