# Attention weights are masked after their softmax with masked_fill_, which overwrites what softmax needs for backward.
# source: none (a common mistake, written small)
# expect: modified-in-place
# raises: RuntimeError
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, padding):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / x.shape[2] ** 0.5
        weights = scores.softmax(dim=-1)
        weights.masked_fill_(padding.unsqueeze(1), 0.0)  # <- cause
        return weights @ self.value(x)


torch.manual_seed(0)
block = Attention()
optimizer = torch.optim.Adam(block.parameters(), lr=1e-3)
for x in torch.randn(4, 6, 5, 8):
    padding = torch.arange(5).expand(6, 5) >= torch.randint(2, 6, (6, 1))
    loss = nn.functional.mse_loss(block(x, padding), x)
    optimizer.zero_grad()
    loss.backward()  # <- modified-in-place
    optimizer.step()
