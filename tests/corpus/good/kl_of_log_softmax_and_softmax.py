# F.kl_div of log_softmax and the softmax of another view, both with gradients, beside a supervised term.
# source: none (a common pattern, written small)
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(8)
net = nn.Sequential(nn.Linear(6, 20), nn.GELU(), nn.Linear(20, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for x in torch.randn(60, 16, 6):
    weak, strong = net(x + 0.05 * torch.randn_like(x)), net(x + 0.3 * torch.randn_like(x))
    consistency = F.kl_div(F.log_softmax(strong, -1), F.softmax(weak, -1), reduction="batchmean")
    symmetric = F.kl_div(F.log_softmax(weak, -1), F.log_softmax(strong, -1), reduction="batchmean", log_target=True)
    loss = F.nll_loss(F.log_softmax(weak, -1), x[:, :4].argmax(1)) + 0.2 * (consistency + symmetric)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
