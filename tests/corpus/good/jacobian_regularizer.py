# A Jacobian penalty by random projections: autograd.grad of the logits with respect to the input, with create_graph.
# source: facebookresearch/jacobian_regularizer jacobian/jacobian.py
import torch
import torch.autograd as autograd
import torch.nn as nn


class JacobianReg(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.n = n

    def forward(self, x, y):
        batch, classes = y.shape
        total = 0
        for _ in range(self.n):
            v = nn.functional.normalize(torch.randn(batch, classes), dim=1)
            (jv,) = autograd.grad(y.reshape(-1), x, v.reshape(-1), create_graph=True)
            total = total + classes * jv.norm() ** 2 / (self.n * batch)
        return 0.5 * total


torch.manual_seed(105)
model = nn.Sequential(nn.Linear(10, 32), nn.Softplus(), nn.Linear(32, 3))
criterion, reg, lambda_jr = nn.CrossEntropyLoss(), JacobianReg(n=2), 0.05
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(40):
    data = torch.randn(32, 10)
    target = data[:, :3].argmax(1)
    data.requires_grad = True
    optimizer.zero_grad()
    output = model(data)
    loss_super = criterion(output, target)
    r = reg(data, output)
    loss = loss_super + lambda_jr * r
    loss.backward()
    optimizer.step()
    if step % 13 == 0:
        print(step, f"{loss_super.item():.4f} {r.item():.4f}")
