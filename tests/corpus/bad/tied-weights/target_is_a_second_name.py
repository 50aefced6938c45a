# Q-learning with a target network that is only a second name for the network.
# source: none (a common mistake, written small)
# expect: tied-weights
# severity: hint (a slow copy is told by its name only)
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 2)
target = net  # <- cause
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _step in range(20):
    s, s2 = torch.randn(16, 4), torch.randn(16, 4)
    q = net(s)[:, :1]
    wanted = s[:, :1] + 0.9 * target(s2).max(1, keepdim=True)[0]  # <- tied-weights
    loss = nn.functional.mse_loss(q, wanted)
    opt.zero_grad()
    loss.backward()
    opt.step()
