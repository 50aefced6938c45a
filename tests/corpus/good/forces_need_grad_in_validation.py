# A neural potential: forces are minus the gradient of the energy with respect to positions, so validation too runs with
# autograd on; in training the gradient is taken with create_graph and is part of the loss.
# source: atomistic-machine-learning/schnetpack src/schnetpack/task.py
import torch
from torch import nn

torch.manual_seed(223)


class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = nn.Sequential(nn.Linear(1, 24), nn.Softplus(), nn.Linear(24, 24), nn.Softplus(), nn.Linear(24, 1))

    def forward(self, r):
        r.requires_grad_()
        i, j = torch.triu_indices(r.shape[1], r.shape[1], 1)
        distance = (r[:, i] - r[:, j]).norm(dim=-1, keepdim=True)
        energy = self.pair(distance).sum((1, 2))
        (slope,) = torch.autograd.grad(energy.sum(), r, create_graph=self.training)
        return energy, -slope


def truth(r):
    r = r.clone().requires_grad_()
    i, j = torch.triu_indices(r.shape[1], r.shape[1], 1)
    energy = ((r[:, i] - r[:, j]).norm(dim=-1) - 1.5).square().sum(1)
    return energy.detach(), -torch.autograd.grad(energy.sum(), r)[0]


data = [(r, *truth(r)) for r in torch.randn(14, 16, 4, 3).unbind()]
model = Potential()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    model.train()
    for r, energy, force in data[:12]:
        e, f = model(r.clone())
        loss = 0.05 * nn.functional.mse_loss(e, energy) + nn.functional.mse_loss(f, force)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    mae = sum((model(r.clone())[1].detach() - force).abs().mean().item() for r, _, force in data[12:]) / 2
    print(f"epoch {epoch} loss {loss.item():.4f} force error {mae:.4f}")
