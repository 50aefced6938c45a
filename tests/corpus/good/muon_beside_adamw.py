# Two optimizers over parts of one model, kept in a list: a hand-written one that orthogonalises momentum for matrices,
# AdamW for the rest; a lookahead copy is synchronised by hand every five steps.
# source: KellerJordan/Muon muon.py, arxiv.org/abs/1907.08610 (Lookahead)
import torch
from torch import nn


def zeropower_via_newtonschulz5(g, steps=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / (g.norm() + 1e-7)
    transposed = g.size(0) > g.size(1)
    x = x.T if transposed else x
    for _ in range(steps):
        xx = x @ x.T
        x = a * x + (b * xx + c * xx @ xx) @ x
    return x.T if transposed else x


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.9):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                buf = state.setdefault("momentum_buffer", torch.zeros_like(p))
                buf.lerp_(p.grad, 1 - group["momentum"])
                update = p.grad.lerp_(buf, group["momentum"])
                p.add_(zeropower_via_newtonschulz5(update), alpha=-group["lr"])


torch.manual_seed(106)
model = nn.Sequential(nn.Linear(12, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4))
matrices = [p for p in model.parameters() if p.ndim == 2]
others = [p for p in model.parameters() if p.ndim < 2]
optimizers = [Muon(matrices), torch.optim.AdamW(others, lr=5e-3, weight_decay=0.01)]
slow = [p.detach().clone() for p in model.parameters()]
for step in range(1, 41):
    x = torch.randn(48, 12)
    loss = nn.functional.cross_entropy(model(x), (x[:, :4] + x[:, 4:8]).argmax(1))
    loss.backward()
    for opt in optimizers:
        opt.step()
    model.zero_grad(set_to_none=True)
    if step % 5 == 0:
        with torch.no_grad():
            for p, s in zip(model.parameters(), slow, strict=True):
                s.lerp_(p, 0.8)
                p.copy_(s)
    if step % 10 == 0:
        print(step, loss.item())
