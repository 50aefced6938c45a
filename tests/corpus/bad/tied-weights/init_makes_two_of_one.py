# A language model ties its head to its embedding, and the initialization gives each a new weight.
# source: none (a common mistake, written small)
# expect: tied-weights
# severity: hint (two weights may be wanted)
import torch
from torch import nn


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(20, 16), nn.Linear(16, 20, bias=False)
        self.head.weight = self.embed.weight
        for part in (self.embed, self.head):
            part.weight = nn.Parameter(torch.randn(20, 16) * 0.05)  # <- tied-weights, cause

    def forward(self, ids):
        return self.head(self.embed(ids))


torch.manual_seed(0)
net = LM()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for ids in torch.randint(0, 20, (20, 32)):
    loss = nn.functional.cross_entropy(net(ids), (ids + 1) % 20)
    opt.zero_grad()
    loss.backward()
    opt.step()
