# Sharpness-aware training in the form of a closure: step() climbs first, and the closure does not clear what it finds.
# source: davda54/sam#8
# expect: sam-gradients-kept
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ClosureSAM:
    def __init__(self, params, base, rho):
        self.params, self.base, self.rho = list(params), base, rho

    def zero_grad(self):
        self.base.zero_grad()

    def step(self, closure):
        with torch.no_grad():
            norm = torch.cat([p.grad.flatten() for p in self.params]).norm()
            climb = [self.rho * p.grad / (norm + 1e-12) for p in self.params]
            for p, e_w in zip(self.params, climb, strict=True):
                p.add_(e_w)
        with torch.enable_grad():
            closure()
        with torch.no_grad():
            for p, e_w in zip(self.params, climb, strict=True):
                p.sub_(e_w)
        self.base.step()  # <- sam-gradients-kept


def train(model, loader, loss_function, epochs):
    base = torch.optim.Adam(model.parameters(), lr=5e-3)
    optimizer = ClosureSAM(model.parameters(), base, rho=0.1)
    for epoch in range(epochs):
        for inputs, output in loader:

            def closure(inputs=inputs, output=output):
                loss = loss_function(model(inputs), output)  # <- cause
                loss.backward()  # <- cause
                return loss

            loss = closure()
            optimizer.step(closure)
            optimizer.zero_grad()
        print(f"epoch {epoch} loss {loss.item():.4f}")


torch.manual_seed(7)
x = torch.randn(80, 6)
y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2]
net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
train(net, DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True), nn.MSELoss(), epochs=4)
