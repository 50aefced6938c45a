# Adaptive SAM: the climb is scaled by the size of each weight, the gradients are cleared at the top, and only then
# comes the backward whose gradient the wrapped optimizer applies, from the weights of before.
# source: SamsungLabs/ASAM asam.py
import torch
from torch import nn


class ASAM:
    def __init__(self, optimizer, model, rho=0.3, eta=0.01):
        self.optimizer, self.model, self.rho, self.eta = optimizer, model, rho, eta
        self.climbed = {}

    @torch.no_grad()
    def ascent_step(self):
        scaled = {}
        for name, p in self.model.named_parameters():
            t = p.abs() + self.eta if name.endswith("weight") else torch.ones_like(p)
            scaled[name] = (t, t * p.grad)
        norm = torch.stack([g.norm() for _, g in scaled.values()]).norm() + 1e-16
        for name, p in self.model.named_parameters():
            t, g = scaled[name]
            self.climbed[name] = t * g * (self.rho / norm)
            p.add_(self.climbed[name])
        self.optimizer.zero_grad()

    @torch.no_grad()
    def descent_step(self):
        for name, p in self.model.named_parameters():
            p.sub_(self.climbed[name])
        self.optimizer.step()
        self.optimizer.zero_grad()


torch.manual_seed(228)
model = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 3))
minimizer = ASAM(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4), model)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(minimizer.optimizer, T_max=6)
x = torch.randn(240, 10)
y = x[:, :3].argmax(1)
for epoch in range(6):
    for rows in torch.randperm(240).split(30):
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        minimizer.ascent_step()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        minimizer.descent_step()
    scheduler.step()
    print(epoch, f"loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.3f}")
