# The loss is computed on an adapted copy of the model, so its gradients are the copy's, and Adam never gets any.
# source: none (a public bug report, written small)
# expect: step-without-backward
# cause: not found (the copy, its use and the gradients that are not given back are all places to mend it)
import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for _step in range(40):
    x = torch.randn(16, 4)
    fast = copy.deepcopy(model)  # <- cause
    inner = nn.functional.mse_loss(fast(x), x[:, :1])
    grads = torch.autograd.grad(inner, list(fast.parameters()))
    for p, g in zip(fast.parameters(), grads, strict=False):
        p.data -= 0.01 * g
    loss = nn.functional.mse_loss(fast(x), x[:, :1])  # <- cause
    opt.zero_grad()
    loss.backward()  # <- cause
    opt.step()  # <- step-without-backward, cause
print(loss.item())
