# Every few steps the curvature is measured: loss.backward(create_graph=True), Hessian-vector products by a second
# differentiation, and then the gradients are set to None by hand to break the cycle.
# source: amirgholami/PyHessian pyhessian/hessian.py
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore", message="Using backward\\(\\) with create_graph=True")
torch.manual_seed(25)
model = nn.Sequential(nn.Linear(5, 16), nn.Softplus(), nn.Linear(16, 1)).double()
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
x = torch.randn(128, 5, dtype=torch.double)
y = torch.sin(x).sum(1, keepdim=True)


def top_eigenvalue(model, data, target, iterations=8):
    model.zero_grad()
    criterion(model(data), target).backward(create_graph=True)
    params = list(model.parameters())
    grads = [p.grad + 0.0 for p in params]
    v = [torch.randn_like(p) for p in params]
    for _ in range(iterations):
        scale = torch.sqrt(sum((a * a).sum() for a in v))
        v = [a / scale for a in v]
        hv = torch.autograd.grad(grads, params, grad_outputs=v, only_inputs=True, retain_graph=True)
        eigenvalue = sum((a * b).sum() for a, b in zip(hv, v, strict=True)).item()
        v = [h.detach() for h in hv]
    for p in params:
        p.grad = None
    return eigenvalue


for step in range(40):
    if step % 8 == 0:
        print(step, f"sharpness {top_eigenvalue(model, x, y):.3f}", end=" ")
    batch = torch.randint(0, 128, (32,))
    loss = criterion(model(x[batch]), y[batch])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 8 == 0:
        print(f"loss {loss.item():.4f}")
