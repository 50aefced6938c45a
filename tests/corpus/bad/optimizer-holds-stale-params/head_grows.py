# For new classes the head is replaced by a wider one; the optimizer keeps the old head, and its last gradient.
# source: written for the rule: a replaced head whose gradient nobody clears, since the net no longer has it
# expect: optimizer-holds-stale-params
import torch
from torch import nn


class IncrementalNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 12), nn.ReLU())
        self.head = nn.Linear(12, 2)

    def forward(self, x):
        return self.head(self.body(x))

    @torch.no_grad()
    def grow_head(self, extra):
        old = self.head
        self.head = nn.Linear(old.in_features, old.out_features + extra)  # <- cause
        self.head.weight[: old.out_features] = old.weight


torch.manual_seed(0)
net = IncrementalNet()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)  # <- optimizer-holds-stale-params, cause
centres = 2 * torch.randn(4, 5)
for phase in range(2):
    if phase:
        net.grow_head(2)  # <- cause
    for _ in range(30):
        y = torch.randint(0, 2 + 2 * phase, (16,))
        loss = nn.functional.cross_entropy(net(centres[y] + torch.randn(16, 5)), y)
        net.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"phase {phase} loss {loss.item():.4f}")
