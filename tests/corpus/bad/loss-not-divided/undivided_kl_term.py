# Distillation over windows of eight: half a divergence plus half a cross-entropy, both means, without a division.
# source: none (a public bug report, written small)
# expect: loss-not-divided
# severity: hint (a smaller learning rate makes up for it)
import torch
from torch import nn

F = nn.functional
torch.manual_seed(0)
net, teacher = nn.Linear(8, 6), nn.Linear(8, 6).requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=3e-3)
for step in range(64):
    x = torch.randn(32, 8)
    y = x[:, :6].argmax(1)
    kd = F.kl_div(net(x).log_softmax(-1), teacher(x).softmax(-1), reduction="batchmean")
    loss = 0.5 * kd + 0.5 * F.cross_entropy(net(x), y)  # <- cause
    loss.backward()  # <- loss-not-divided, cause
    if (step + 1) % 8 == 0:
        opt.step()
        opt.zero_grad()
