# All pairs are compared on purpose: scores of shape (N, 1) minus (1, N), and distances of (N,) to N anchors.
# source: https://www.microsoft.com/en-us/research/publication/learning-to-rank-using-gradient-descent/ (RankNet)
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(96, 3)
y = x @ torch.tensor([1.0, -2.0, 0.5])
model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
anchors = torch.linspace(-2, 2, 16)
for _ in range(3):
    for start in range(0, 96, 16):
        scores, target = model(x[start : start + 16]), y[start : start + 16].unsqueeze(1)
        ranked = F.softplus(-(scores - scores.T) * (target - target.T).sign()).mean()
        squared = ((scores - scores.T) - (target - target.T)).pow(2).mean()
        spread = (scores.squeeze(1).unsqueeze(1) - anchors).abs().mean()
        loss = ranked + 0.1 * squared + 0.01 * spread + F.mse_loss(scores, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
