# Only the weights of the norm layers are frozen in a small conv net, and each epoch begins with train().
# source: none (a common mistake, written small)
# expect: optimizer-params-frozen
# severity: hint (statistics may be adapted to new data on purpose)
import torch
from torch import nn

torch.manual_seed(1)
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2))
for layer in net:
    if isinstance(layer, nn.BatchNorm2d):
        layer.weight.requires_grad = layer.bias.requires_grad = False
optimizer = torch.optim.Adam((p for p in net.parameters() if p.requires_grad), lr=1e-3)
images = torch.randn(40, 1, 8, 8)
labels = (images.mean((1, 2, 3)) > 0).long()
for _epoch in range(3):
    net.train()  # <- cause
    for rows in torch.randperm(40).split(10):
        optimizer.zero_grad()
        logits = net(images[rows])  # <- optimizer-params-frozen
        nn.functional.cross_entropy(logits, labels[rows]).backward()
        optimizer.step()
