# Learnt task weights: each loss is multiplied by exp(-s) and s is added; the s are parameters of the same optimizer,
# and the total may go below zero.
# source: yaringal/multi-task-learning-example multi-task-learning-example-pytorch.ipynb, arxiv.org/abs/1705.07115
import torch
from torch import nn


class Weighted(nn.Module):
    def __init__(self, n_tasks):
        super().__init__()
        self.log_vars = nn.Parameter(torch.zeros(n_tasks))

    def forward(self, losses):
        return (torch.exp(-self.log_vars) * losses + self.log_vars).sum()


torch.manual_seed(253)
trunk, to_depth, to_label = nn.Sequential(nn.Linear(6, 48), nn.ReLU()), nn.Linear(48, 1), nn.Linear(48, 3)
weighted = Weighted(2)
modules = nn.ModuleList([trunk, to_depth, to_label, weighted])
optimizer = torch.optim.Adam(modules.parameters(), lr=1e-2)
x = torch.randn(256, 6)
depth, label = 0.2 * x.sum(1, keepdim=True) + 0.05 * torch.randn(256, 1), x[:, :3].argmax(1)
for epoch in range(8):
    for rows in torch.randperm(256).split(32):
        h = trunk(x[rows])
        losses = torch.stack(
            [
                nn.functional.mse_loss(to_depth(h), depth[rows]),
                nn.functional.cross_entropy(to_label(h), label[rows]),
            ]
        )
        total = weighted(losses)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    print(epoch, f"total {total.item():.3f}", [round(v, 3) for v in weighted.log_vars.exp().tolist()])
