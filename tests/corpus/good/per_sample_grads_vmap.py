# Per-sample gradients by vmap(grad(...)), clipped one by one and averaged into .grad, for an ordinary optimizer.
# source: pytorch/tutorials intermediate_source/per_sample_grads.py
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap

torch.manual_seed(32)


class SimpleCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 1)
        self.fc1 = nn.Linear(64, 3)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        return F.log_softmax(self.fc1(torch.flatten(x, 1)), dim=1)


model = SimpleCNN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
named = dict(model.named_parameters())


def compute_loss(params, sample, target):
    predictions = functional_call(model, params, (sample.unsqueeze(0),))
    return F.nll_loss(predictions, target.unsqueeze(0))


ft_compute_sample_grad = vmap(grad(compute_loss), in_dims=(None, 0, 0))
data, targets = torch.rand(60, 1, 6, 6), torch.arange(60) % 3
data[torch.arange(60), 0, targets] += 1.0

for epoch in range(4):
    for rows in torch.randperm(60).split(15):
        detached = {k: v.detach() for k, v in named.items()}
        per_sample = ft_compute_sample_grad(detached, data[rows], targets[rows])
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in per_sample.values()]).norm(dim=0)
        factor = (2.0 / (norms + 1e-6)).clamp(max=1.0)
        for k, p in named.items():
            p.grad = torch.einsum("i,i...->...", factor, per_sample[k]) / len(rows)
        optimizer.step()
    with torch.no_grad():
        print(epoch, F.nll_loss(model(data), targets).item())
