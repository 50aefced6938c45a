# Meta-learning by hand: the adapted weights are detached, so the outer loss reaches them and never the meta model.
# source: none (a common mistake, written small)
# expect: step-without-backward
# cause: not found (what cuts the weights off is not looked for)
import torch
from torch import nn
from torch.func import functional_call


class Meta:
    def __init__(self, net, inner_lr=0.05):
        self.net, self.inner_lr = net, inner_lr
        self.optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def adapt(self, x, y):
        fast = {name: p.detach().clone().requires_grad_() for name, p in self.net.named_parameters()}  # <- cause
        loss = nn.functional.mse_loss(functional_call(self.net, fast, (x,)), y)
        grads = torch.autograd.grad(loss, list(fast.values()))
        return {
            name: (p - self.inner_lr * g).detach().requires_grad_()  # <- cause
            for (name, p), g in zip(fast.items(), grads, strict=True)
        }

    def outer_step(self, support, query):
        fast = self.adapt(*support)
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(functional_call(self.net, fast, (query[0],)), query[1])  # <- cause
        loss.backward()  # <- cause
        self.optimizer.step()  # <- step-without-backward, cause
        return loss.item()


torch.manual_seed(5)
meta = Meta(nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1)))
for amplitude in torch.rand(30):
    x = torch.rand(16, 1) * 6 - 3
    y = amplitude * torch.sin(x)
    meta.outer_step((x[:8], y[:8]), (x[8:], y[8:]))
