# The head of a model is in no optimizer; none of its layers has a bias.
# source: none (a common mistake, written small)
# expect: params-missing-from-optimizer
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.head = nn.ModuleDict({"wide": nn.Linear(8, 8, bias=False), "slim": nn.Linear(8, 1, bias=False)})

    def forward(self, x):
        return self.head["slim"](self.head["wide"](self.body(x)).relu())


net = Net()
optimizer = torch.optim.SGD(net.body.parameters(), lr=0.05)  # <- params-missing-from-optimizer, cause
for _ in range(12):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    nn.functional.mse_loss(net(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
