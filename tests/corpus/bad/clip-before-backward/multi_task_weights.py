# A multi-task weighting method whose backward() helper clips the shared parameters before it computes their gradients.
# source: Cranial-XIX/FAMO#4
# expect: clip-before-backward
import torch
import torch.nn.functional as F
from torch import nn


class WeightMethod:
    def __init__(self, n_tasks, max_norm=1.0):
        self.w = torch.zeros(n_tasks)
        self.max_norm = max_norm

    def get_weighted_loss(self, losses):
        z = F.softmax(self.w, -1)
        return (losses * z).sum()

    def backward(self, losses, shared_parameters):
        loss = self.get_weighted_loss(losses)
        if self.max_norm > 0:
            torch.nn.utils.clip_grad_norm_(shared_parameters, self.max_norm)  # <- clip-before-backward, cause
        loss.backward()
        self.w = 0.9 * self.w + 0.1 * losses.detach().log()
        return loss


torch.manual_seed(0)
trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
heads = nn.ModuleList([nn.Linear(32, 1), nn.Linear(32, 3)])
shared = list(trunk.parameters())
optimizer = torch.optim.Adam(shared + list(heads.parameters()), lr=1e-3)
method = WeightMethod(n_tasks=2, max_norm=0.1)
x = torch.randn(96, 8)
y_reg, y_cls = 5 * x.sum(1, keepdim=True), x[:, :3].argmax(1)

for epoch in range(2):
    for batch in torch.randperm(96).split(16):
        optimizer.zero_grad()
        features = trunk(x[batch])
        loss_reg = F.mse_loss(heads[0](features), y_reg[batch])
        loss_cls = F.cross_entropy(heads[1](features), y_cls[batch])
        loss = method.backward(torch.stack([loss_reg, loss_cls]), shared)
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
