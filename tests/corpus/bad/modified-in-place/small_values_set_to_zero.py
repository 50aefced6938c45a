# A gate's small values are set to 0 by a mask, in a function that works on what tanh has returned.
# source: none (a common mistake, written small)
# expect: modified-in-place
# raises: RuntimeError
import torch
from torch import nn


def prune(h, threshold=0.1):
    mask = h.abs() < threshold
    h[mask] = 0  # <- cause
    return h


class Trainer:
    def __init__(self):
        self.inner, self.outer = nn.Linear(6, 12), nn.Linear(12, 1)
        self.opt = torch.optim.SGD([*self.inner.parameters(), *self.outer.parameters()], lr=0.05)

    def step(self, x):
        h = prune(torch.tanh(self.inner(x)))
        loss = (self.outer(h) - x.prod(1, keepdim=True)).square().mean()
        self.opt.zero_grad()
        loss.backward()  # <- modified-in-place
        self.opt.step()


torch.manual_seed(1)
trainer = Trainer()
for x in torch.randn(4, 16, 6):
    trainer.step(x)
