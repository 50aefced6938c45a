# The net calls F.dropout, whose training is True by default: its evaluation drops half of the units, too.
# source: none (a common mistake, written small)
# expect: validation-in-train-mode
# severity: hint (sampling with dropout may be wanted)
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 1)

    def forward(self, x):
        return self.b(nn.functional.dropout(self.a(x), 0.5))  # <- validation-in-train-mode, cause


torch.manual_seed(0)
model = Net()
opt = torch.optim.SGD(model.parameters(), lr=1e-2)
for _epoch in range(3):
    model.train()
    for x in torch.randn(6, 16, 8):
        loss = nn.functional.mse_loss(model(x), x[:, :1])
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        x = torch.randn(64, 8)
        print(nn.functional.mse_loss(model(x), x[:, :1]).item())
