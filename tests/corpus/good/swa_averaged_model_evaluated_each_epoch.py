# An exponential average by torch's AveragedModel, updated after every step and evaluated beside the raw model after
# each epoch; BatchNorm's buffers are averaged too.
# source: docs.pytorch.org/docs/stable/optim.html (Weight Averaging, get_ema_multi_avg_fn)
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(237)
x = torch.randn(320, 7)
y = (x * torch.linspace(-1, 1, 7)).sum(1, keepdim=True) + 0.5 * torch.randn(320, 1)
model = nn.Sequential(nn.Linear(7, 32), nn.BatchNorm1d(32), nn.SiLU(), nn.Linear(32, 1))
ema_model = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95), use_buffers=True)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)


@torch.inference_mode()
def evaluate(net):
    net.eval()
    return nn.functional.mse_loss(net(x[256:]), y[256:]).item()


for epoch in range(6):
    model.train()
    for rows in torch.randperm(256).split(16):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        ema_model.update_parameters(model)
    print(f"{epoch} train {loss.item():.3f} raw {evaluate(model):.3f} average {evaluate(ema_model):.3f}")
