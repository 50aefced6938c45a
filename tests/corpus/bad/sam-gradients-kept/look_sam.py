# LookSAM: inside step() the pass at the perturbed weights adds to the gradients of the pass before it.
# source: rollovd/LookSAM#3
# expect: sam-gradients-kept
import torch
from torch import nn


class LookSAM(torch.optim.Optimizer):
    def __init__(self, k, alpha, model, base_optimizer, criterion, rho=0.05, **kwargs):
        super().__init__(model.parameters(), dict(rho=rho, **kwargs))
        self.model, self.criterion, self.k, self.alpha, self.rho = model, criterion, k, alpha, rho
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)

    def grad_norm(self):
        return torch.stack([p.grad.norm() for p in self.model.parameters()]).norm()

    def step(self, t, samples, targets):
        if t % self.k == 0:
            self.perturbed_gradients(samples, targets)
        else:
            scale = self.alpha * self.grad_norm()
            for p in self.model.parameters():
                g_v = self.state[p]["g_v"]
                p.grad.add_(scale / (g_v.norm() + 1e-8) * g_v)
        self.base_optimizer.step()  # <- sam-gradients-kept
        self.zero_grad()

    def perturbed_gradients(self, samples, targets):
        scale = self.rho / (self.grad_norm() + 1e-8)
        with torch.no_grad():
            for p in self.model.parameters():
                self.state[p]["old_p"], self.state[p]["old_grad"] = p.clone(), p.grad.clone()
                p.add_(p.grad * scale)  # <- cause
        self.criterion(self.model(samples), targets).backward()  # <- cause
        with torch.no_grad():
            for p in self.model.parameters():
                p.copy_(self.state[p]["old_p"])
                g, g_s = self.state[p]["old_grad"], p.grad
                self.state[p]["g_v"] = g_s - (g * g_s).sum() / (g.square().sum() + 1e-12) * g


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 3))
criterion = nn.CrossEntropyLoss()
optimizer = LookSAM(k=3, alpha=0.7, model=model, base_optimizer=torch.optim.SGD, criterion=criterion, lr=0.1)
data = torch.randn(96, 10)
labels = data[:, :3].argmax(1)
for epoch in range(3):
    for train_index, idx in enumerate(torch.randperm(96).split(16)):
        loss = criterion(model(data[idx]), labels[idx])
        loss.backward()
        optimizer.step(t=train_index, samples=data[idx], targets=labels[idx])
    print(f"Epoch {epoch}, Loss: {loss.item():.4f}")
