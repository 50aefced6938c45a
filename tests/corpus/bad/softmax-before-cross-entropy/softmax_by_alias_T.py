# The softmax before cross_entropy is called by a second name of torch.
# source: none (a public bug report, written small)
# expect: softmax-before-cross-entropy
import torch
from torch import nn

T = torch
torch.manual_seed(0)
net = nn.Linear(8, 6)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for _step in range(40):
    x = torch.randn(32, 8)
    y = x[:, :6].argmax(1)
    p = T.softmax(net(x), dim=-1)  # <- cause
    loss = torch.nn.functional.cross_entropy(p, y)  # <- softmax-before-cross-entropy
    opt.zero_grad()
    loss.backward()
    opt.step()
