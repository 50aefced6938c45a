# An energy distance between generated and observed numbers: (N,) minus (N, 1) gives all pairs, made by [:, None] and by
# a column that is reshaped beforehand; weights for each row and a mean as target broadcast as well.
# source: arxiv.org/abs/1705.10743 (Cramer distance), brain-research/realistic generative losses by broadcasting
import torch
from torch import nn

torch.manual_seed(223)
net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(40):
    observed = 0.5 * torch.randn(16) + 2
    made = net(torch.randn(16, 2)).view(-1)
    other = net(torch.randn(16, 2))
    across = (made - observed[:, None]).abs().mean()
    within = 0.5 * (other - other.t()).abs().mean()
    centre = ((other - observed.mean()) ** 2).mean() + (other - other.mean(0, keepdim=True)).pow(2).mean()
    row = observed.view(1, -1)
    pairs = ((other - row) ** 2).mean()
    loss = across - within + 0.01 * centre + 0.01 * pairs
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
