# The attack names whose gradients it wants: backward(inputs=[delta]) leaves the weights' gradients alone, so there is
# nothing to clear between the attack and the backward for the weights.
# source: docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html (inputs)
import torch
from torch import nn

torch.manual_seed(225)
signals = torch.randn(128, 1, 20)
targets = signals.square().mean(2)
net = nn.Sequential(nn.Conv1d(1, 8, 5), nn.Tanh(), nn.Flatten(), nn.Linear(128, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)

for epoch in range(6):
    for rows in torch.randperm(128).split(16):
        delta = torch.zeros(1, 1, 20, requires_grad=True)
        for _ in range(3):
            error = nn.functional.mse_loss(net(signals[rows] + delta), targets[rows])
            error.backward(inputs=[delta])
            with torch.no_grad():
                delta += 0.05 * delta.grad / delta.grad.norm()
            delta.grad = None
        loss = nn.functional.mse_loss(net(signals[rows] + delta.detach()), targets[rows])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(epoch, loss.item())
