# Quantile forecasts: seven outputs (N, 7) for one observation (N, 1), subtracted on purpose; the median is also
# compared with the target, column against column (N, 1) and (N, 1).
# source: sktime/pytorch-forecasting pytorch_forecasting/metrics/quantile.py
import torch
from torch import nn

torch.manual_seed(220)
quantiles = torch.tensor([0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98])
t = torch.arange(400) / 8.0
series = t.sin() + (0.1 + 0.2 * t.cos().abs()) * torch.randn(400)
windows = series.unfold(0, 17, 1)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, len(quantiles)))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


def pinball(prediction, target):
    errors = target - prediction
    return torch.max((quantiles - 1) * errors, quantiles * errors).mean()


for epoch in range(6):
    for window in windows[torch.randperm(len(windows))].split(32):
        history, future = window[:, :-1], window[:, -1:]
        prediction = model(history)
        loss = pinball(prediction, future) + 0.1 * nn.functional.l1_loss(prediction[:, 3:4], future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    inside = ((future > prediction[:, 1:2]) & (future < prediction[:, 5:6])).float().mean()
    print(f"epoch {epoch} loss {loss.item():.4f} inside the 80 % band {inside.item():.2f}")
