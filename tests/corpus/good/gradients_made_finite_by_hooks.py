# The loss is finite, but the gradient of a norm at zero is not a number: hooks on the parameters turn such entries to
# zero before they reach .grad.
# source: docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html, pytorch/pytorch#6394
import torch
from torch import nn

torch.manual_seed(240)
net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
replaced = []


def finite(grad):
    replaced.append(int((~grad.isfinite()).sum()))
    return torch.nan_to_num(grad, nan=0.0, posinf=0.0, neginf=0.0)


for p in net.parameters():
    p.register_hook(finite)
optimizer = torch.optim.Adagrad(net.parameters(), lr=0.1)
for step in range(80):
    x = torch.randn(24, 3)
    if step % 20 == 10:
        x[0] = 0.0
    output = net(x) * x[:, :1].ne(0)
    distance = output.square().sum(1).sqrt()
    loss = (distance - x.norm(dim=1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, f"loss {loss.item():.4f} entries replaced {sum(replaced)}")
