# Accumulation where the share of each part is given to backward itself: loss.backward(gradient=weight).
# source: docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
import torch
from torch.nn import Linear, Module, SmoothL1Loss
from torch.optim import Adamax


class Net(Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Linear(3, 20, dtype=torch.float64), Linear(20, 1, dtype=torch.float64)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


torch.manual_seed(67)
net, criterion = Net(), SmoothL1Loss()
optimizer = Adamax(net.parameters(), lr=2e-2)
table = torch.rand(300, 3, dtype=torch.float64)
truth = table.prod(1, keepdim=True) * 4

for epoch in range(4):
    for big in torch.randperm(300).split(50):
        net.zero_grad()
        seen = 0.0
        for part in big.split(20):
            weight = torch.tensor(len(part) / len(big), dtype=torch.float64)
            loss = criterion(net(table[part]), truth[part])
            loss.backward(gradient=weight)
            seen += loss.item() * weight.item()
        optimizer.step()
    print(epoch, f"{seen:.5f}")
