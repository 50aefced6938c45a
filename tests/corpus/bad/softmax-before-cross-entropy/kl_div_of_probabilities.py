# kl_div is given probabilities where it expects log-probabilities, so the loss is negative.
# source: none (a public bug report, written small)
# expect: softmax-before-cross-entropy
# cause: not found (one statement calls softmax twice)
import torch
from torch import nn

F = nn.functional
torch.manual_seed(0)
net, teacher = nn.Linear(8, 6), nn.Linear(8, 6).requires_grad_(False)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _step in range(60):
    x = torch.randn(32, 8)
    loss = F.kl_div(  # <- softmax-before-cross-entropy
        net(x).softmax(-1),  # <- cause
        teacher(x).softmax(-1),
        reduction="batchmean",
    )
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())  # negative: no KL divergence is
