# Variable projection: before each step the linear head is solved by least squares under no_grad and written into the
# layer; it asks for no gradient, and only the features below it are in the optimizer.
# source: arxiv.org/abs/2402.13865 (variable projection)
import torch
from torch import nn

torch.manual_seed(266)
features, head = nn.Sequential(nn.Linear(2, 16), nn.Tanh()), nn.Linear(16, 1, bias=False)
head.requires_grad_(False)
optimizer = torch.optim.Adam(features.parameters(), lr=1e-2)
x = torch.rand(300, 2) * 4 - 2
y = (x[:, :1] * x[:, 1:]).sin()


@torch.no_grad()
def solve_head():
    h = features(x)
    gram = h.T @ h + 1e-2 * torch.eye(16)
    head.weight.copy_(torch.linalg.solve(gram, h.T @ y).T)


for epoch in range(20):
    for rows in torch.randperm(300).split(100):
        solve_head()
        loss = nn.functional.mse_loss(head(features(x[rows])), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 0:
        print(epoch, loss.item())
