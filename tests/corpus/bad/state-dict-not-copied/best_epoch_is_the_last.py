# The best weights are kept without a copy, so at the end the newest ones are loaded into themselves.
# source: none (a common mistake, written small)
# expect: state-dict-not-copied
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
best, best_state = float("inf"), None
for epoch in range(4):
    for x in torch.randn(10, 16, 8):
        loss = nn.functional.mse_loss(net(x), x[:, :1])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch != 3 and loss.item() < best:
        best, best_state = loss.item(), net.state_dict()  # <- cause
net.load_state_dict(best_state)  # <- state-dict-not-copied
