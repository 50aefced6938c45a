# A hypernetwork writes the weights of the main network, which has none of its own: they are new tensors in each forward
# and are in no optimizer; the codes and the hypernetwork are.
# source: g1910/HyperNetworks hypernetwork_modules.py, arxiv.org/abs/1609.09106
import torch
from torch import nn

torch.manual_seed(278)
shapes = [(16, 2), (16,), (1, 16), (1,)]
sizes = [torch.Size(s).numel() for s in shapes]
codes = nn.Embedding(4, 6)
hyper = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, sum(sizes)))
optimizer = torch.optim.AdamW([*codes.parameters(), *hyper.parameters()], lr=5e-3)
angles = torch.tensor([0.0, 0.8, 1.6, 2.4])


def main_network(x, weights):
    w1, b1, w2, b2 = (w.view(s) for w, s in zip(weights.split(sizes), shapes, strict=True))
    return nn.functional.linear(torch.tanh(nn.functional.linear(x, w1, b1)), w2, b2)


for step in range(150):
    task = torch.randint(0, 4, ())
    x = torch.randn(48, 2)
    y = x[:, :1] * angles[task].cos() + x[:, 1:] * angles[task].sin()
    loss = nn.functional.mse_loss(main_network(x, hyper(codes(task))), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, loss.item())
