# Each epoch ends with work in evaluation mode that needs graphs: saliency maps, an attack by autograd.grad, and one
# loss over five crops that are kept.
# source: https://captum.ai/docs/algorithms (saliency) and arXiv:1706.06083 (projected gradient descent)
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for start in range(0, 64, 16):
        optimizer.zero_grad()
        F.cross_entropy(model(x[start : start + 16]), y[start : start + 16]).backward()
        optimizer.step()
    model.eval()
    maps = []
    for start in range(0, 64, 8):
        inputs = x[start : start + 8].clone().requires_grad_()
        (grad,) = torch.autograd.grad(model(inputs).max(1).values.sum(), inputs)
        maps.append(grad.abs())
    attacked = x[:16].clone()
    for _ in range(6):
        attacked.requires_grad_()
        (grad,) = torch.autograd.grad(F.cross_entropy(model(attacked), y[:16]), attacked)
        attacked = (attacked + 0.05 * grad.sign()).detach()
    views = [model(x[:16] + 0.1 * torch.randn(16, 8)) for _ in range(5)]
    loss = torch.stack([F.cross_entropy(view, y[:16]) for view in views]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, torch.cat(maps).mean().item(), loss.item())
