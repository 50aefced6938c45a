# SAM in one call: step(closure) climbs with the gradients that are there, clears, lets the closure run forward and
# backward once more, goes back and updates. The loop itself has one backward, one step and one zero_grad.
# source: davda54/sam README.md (SAM.step with a closure)
import torch
from torch import nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, rho=0.05, lr=0.1, momentum=0.9):
        super().__init__(params, {"rho": rho, "lr": lr})
        self.base = torch.optim.SGD(self.param_groups, lr=lr, momentum=momentum)

    def step(self, closure):
        params = [p for group in self.param_groups for p in group["params"]]
        with torch.no_grad():
            scale = self.param_groups[0]["rho"] / (nn.utils.get_total_norm([p.grad for p in params]) + 1e-12)
            climbed = [p.grad * scale for p in params]
            torch._foreach_add_(params, climbed)
            self.zero_grad()
        closure()
        with torch.no_grad():
            torch._foreach_sub_(params, climbed)
        self.base.step()


torch.manual_seed(229)
model = nn.Sequential(nn.Linear(6, 32), nn.GELU(), nn.Linear(32, 1))
optimizer = SAM(model.parameters())
x = torch.randn(256, 6)
y = x[:, :1] * x[:, 1:2] + x[:, 2:3]

for epoch in range(8):
    for rows in torch.randperm(256).split(32):

        def closure(rows=rows):
            loss = nn.functional.smooth_l1_loss(model(x[rows]), y[rows])
            loss.backward()
            return loss

        loss = closure()
        optimizer.step(closure)
        optimizer.zero_grad()
    print(epoch, loss.item())
