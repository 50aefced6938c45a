# Matrix factorization where users and items are solved in closed form, in turn and in place under no_grad, and only the
# biases learn by gradient: half of the model is trained without autograd.
# source: http://activisiongamescience.github.io/2016/01/11/Implicit-Recommender-Systems-Biased-Matrix-Factorization/
import torch
from torch import nn

torch.manual_seed(265)
n_users, n_items, rank = 30, 40, 3
truth = torch.randn(n_users, rank) @ torch.randn(rank, n_items) + torch.randn(n_users, 1) + torch.randn(n_items)
seen = (torch.rand(n_users, n_items) < 0.6).float()
users, items = torch.randn(n_users, rank), torch.randn(n_items, rank)
user_bias, item_bias = nn.Parameter(torch.zeros(n_users, 1)), nn.Parameter(torch.zeros(n_items))
optimizer = torch.optim.SGD([user_bias, item_bias], lr=5.0)


@torch.no_grad()
def solve(fixed, ratings, mask, damping=0.1):
    gram = torch.einsum("ij,jr,js->irs", mask, fixed, fixed) + damping * torch.eye(rank)
    return torch.linalg.solve(gram, ((mask * ratings) @ fixed).unsqueeze(-1)).squeeze(-1)


for sweep in range(12):
    residual = (truth - user_bias - item_bias).detach()
    users = solve(items, residual, seen)
    items = solve(users, residual.T, seen.T)
    for _ in range(5):
        error = (truth - users @ items.T - user_bias - item_bias) * seen
        loss = error.square().sum() / seen.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if sweep % 3 == 0:
        print(sweep, loss.item())
