# A frozen backbone was put into evaluation mode, and train() of the whole model takes its BatchNorm back to training.
# source: none (a common mistake, written small)
# expect: optimizer-params-frozen
# severity: hint (statistics may be adapted to new data on purpose)
import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16)).requires_grad_(False).eval()
model = nn.Sequential(backbone, nn.Linear(16, 1))
opt = torch.optim.SGD(model[1].parameters(), lr=1e-2)
model.train()  # <- cause
for x in torch.randn(20, 16, 8):
    loss = nn.functional.mse_loss(model(x), x[:, :1])  # <- optimizer-params-frozen
    opt.zero_grad()
    loss.backward()
    opt.step()
