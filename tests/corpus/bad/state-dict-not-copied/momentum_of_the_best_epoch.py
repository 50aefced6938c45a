# Weights are copied for an early stop, and the optimizer's averages beside them are not.
# source: none (a common mistake, written small)
# expect: state-dict-not-copied
import copy

import torch
from torch import nn

torch.manual_seed(2)
net = nn.Linear(6, 3)
adam = torch.optim.Adam(net.parameters(), lr=5e-2)
kept = {}
for step, x in enumerate(torch.randn(30, 16, 6)):
    adam.zero_grad()
    nn.functional.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    adam.step()
    if step == 10:
        kept = {"net": copy.deepcopy(net.state_dict()), "adam": adam.state_dict()}  # <- cause
net.load_state_dict(kept["net"])
adam.load_state_dict(kept["adam"])  # <- state-dict-not-copied
