# Parametrized weights: the optimizer holds original0 and original1, `weight` is computed at each use; one layer is kept
# symmetric by a parametrization of its own, cached over two forwards.
# source: pytorch/tutorials intermediate_source/parametrizations.py
import torch
import torch.nn as nn
import torch.nn.utils.parametrize as parametrize
from torch.nn.utils.parametrizations import spectral_norm, weight_norm


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, a):
        return a.triu()


torch.manual_seed(95)
layer = nn.Linear(8, 8)
parametrize.register_parametrization(layer, "weight", Symmetric())
model = nn.Sequential(weight_norm(nn.Linear(8, 8)), nn.Tanh(), layer, nn.Tanh(), spectral_norm(nn.Linear(8, 8)))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
target_map = torch.randn(8, 8) / 4

for step in range(50):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    with parametrize.cached():
        loss = nn.functional.mse_loss(model(x), x @ target_map) + 0.1 * (model(-x) + model(x)).pow(2).mean()
    loss.backward()
    optimizer.step()
    if step % 15 == 0:
        print(step, loss.item())
with torch.no_grad():
    assert torch.allclose(layer.weight, layer.weight.t())
