# A hypernetwork makes the weights of another net, which is called with them by functional_call.
# source: none (a common pattern, written small)
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(2)
main, hyper = nn.Linear(3, 2), nn.Linear(4, 8)
optimizer = torch.optim.Adam(hyper.parameters(), lr=1e-2)
for x in torch.randn(40, 8, 3):
    weights = hyper(torch.randn(4))
    logits = functional_call(main, {"weight": weights[:6].view(2, 3), "bias": weights[6:]}, (x,))
    loss = nn.functional.cross_entropy(logits, (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
