# Windows of four by step % 4 == 0: the first update has one batch, and the others four.
# source: none (a public bug report, written small)
# expect: last-accumulation-window-dropped
# severity: hint (one update is too small)
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
for step in range(80):
    x = torch.randn(16, 8)
    (nn.functional.mse_loss(net(x), x[:, :1]) / 4).backward()
    if step % 4 == 0:  # steps after 1, 5, 9, ...; meant: (step + 1) % 4  # <- cause
        opt.step()  # <- last-accumulation-window-dropped
        opt.zero_grad()
