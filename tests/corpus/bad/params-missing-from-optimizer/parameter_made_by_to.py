# A scale that is moved after it was made a Parameter: the model has the result of the move, and not the Parameter.
# source: none (a common mistake, written small)
# expect: params-missing-from-optimizer
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4)).to(torch.float64)  # <- cause
        self.last = nn.Linear(4, 1, dtype=torch.float64)

    def forward(self, x):
        return self.last(x * self.scale)


torch.manual_seed(0)
model = Scaled()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)  # <- params-missing-from-optimizer
for _step in range(20):
    x = torch.randn(8, 4, dtype=torch.float64)
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
