# Several guesses for each future (variety loss): mse_loss gets (N, K, 2) and (N, 1, 2), broadcasts on purpose, and only
# the best of the K guesses is sent back. PyTorch warns about the sizes; here they are meant.
# source: agrimgupta92/sgan scripts/train.py (best_k)
import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(221)
n_guesses = 5
predictor = nn.Sequential(nn.Linear(4 + 2, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.Adam(predictor.parameters(), lr=3e-3)
for step in range(150):
    position, speed = torch.randn(32, 2), torch.randn(32, 2)
    turn = torch.where(torch.rand(32, 1) < 0.5, 1.0, -1.0)
    future = position + speed + turn * torch.stack([-speed[:, 1], speed[:, 0]], 1)
    past = torch.cat([position, speed], 1).unsqueeze(1).expand(-1, n_guesses, -1)
    guesses = predictor(torch.cat([past, torch.randn(32, n_guesses, 2)], dim=-1))
    error = mse_loss(guesses, future.unsqueeze(1), reduction="none").sum(-1)
    loss = error.min(dim=1).values.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, f"best {loss.item():.3f} mean {error.mean().item():.3f}")
