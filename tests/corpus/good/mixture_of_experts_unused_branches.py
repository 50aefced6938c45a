# A mixture of experts with hard routing: in many steps some experts see no sample, so their gradients stay None (or
# old state decays) while the others learn.
# source: davidmrau/mixture-of-experts moe.py
import torch
from torch import nn
from torch.distributions.normal import Normal

torch.manual_seed(14)


class MoE(nn.Module):
    def __init__(self, dim, n_experts=6, k=1):
        super().__init__()
        self.k = k
        self.w_gate = nn.Parameter(torch.randn(dim, n_experts) * 0.5)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 16), nn.GELU(), nn.Linear(16, 1)) for _ in range(n_experts)
        )

    def forward(self, x):
        gates = torch.softmax(x @ self.w_gate, 1)
        weight, chosen = gates.topk(self.k, dim=1)
        out = torch.zeros(len(x), 1)
        for e, expert in enumerate(self.experts):
            rows = (chosen == e).any(1).nonzero().flatten()
            if len(rows):
                out = out.index_add(0, rows, expert(x[rows]) * weight[rows].sum(1, keepdim=True))
        importance = gates.sum(0)
        return out, importance.var() / importance.mean() ** 2


model = MoE(4)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
silent, running = 0, 0.0
for step in range(1, 101):
    x = torch.randn(4, 4)
    y = x.abs().sum(1, keepdim=True)
    y_hat, aux_loss = model(x)
    loss = nn.functional.mse_loss(y_hat, y) + aux_loss * 1e-2
    optimizer.zero_grad()
    loss.backward()
    silent += sum(p.grad is None for p in model.parameters())
    optimizer.step()
    running += loss.item()
    if step % 25 == 0:
        print(step, f"{running / 25:.3f}", Normal(y_hat.detach(), 1.0).log_prob(y).mean().item())
        running = 0.0
print("parameters without a gradient, over all steps:", silent)
