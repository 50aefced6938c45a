# A softmax before cross_entropy, which gets views of its result and of the target.
# source: none (a public bug report, written small)
# expect: softmax-before-cross-entropy
import torch
from torch import nn

F = nn.functional
torch.manual_seed(0)
net = nn.Linear(8, 6)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for _step in range(40):
    x = torch.randn(32, 8)
    y = x[:, :6].argmax(1)
    p = F.softmax(net(x), dim=-1)  # <- cause
    loss = F.cross_entropy(p.view(-1, 6), y.view(-1))  # <- softmax-before-cross-entropy
    opt.zero_grad()
    loss.backward()
    opt.step()
