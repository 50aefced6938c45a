# A smooth L1 distance of the author's own: the net returns (N, 1, T), the clean signals are (N, T).
# source: dingmyu/CamNet#4, with another distance
# expect: loss-broadcasts
import torch
from torch import nn


def charbonnier(prediction, target, eps=1e-3):
    return torch.sqrt((prediction - target) ** 2 + eps**2).mean()  # <- loss-broadcasts, cause


torch.manual_seed(0)
model = nn.Sequential(nn.Conv1d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv1d(8, 1, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(30):
    clean = torch.sin(torch.rand(12, 1) * torch.linspace(0, 6, 20))
    noisy = (clean + 0.3 * torch.randn(12, 20)).unsqueeze(1)
    estimate = model(noisy)
    loss = charbonnier(estimate, clean)  # <- cause
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
