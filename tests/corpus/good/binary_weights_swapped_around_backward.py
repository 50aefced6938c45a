# BinaryConnect: real weights are kept aside, forward and backward run on their signs, the real ones come back before
# the step, and are clamped after it; all writes go through copy_ under no_grad.
# source: itayhubara/BinaryNet.pytorch main_binary.py
import torch
from torch import nn

torch.manual_seed(276)
model = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.Hardtanh(), nn.Linear(64, 4), nn.BatchNorm1d(4))
binary = [m.weight for m in model if isinstance(m, nn.Linear)]
for w in binary:
    nn.init.uniform_(w, -0.5, 0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randn(256, 16)
y = (x @ torch.randn(16, 4).sign()).argmax(1)
for epoch in range(6):
    for rows in torch.randperm(256).split(32):
        with torch.no_grad():
            real = [w.clone() for w in binary]
            for w in binary:
                w.copy_(w.sign())
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        with torch.no_grad():
            for w, r in zip(binary, real, strict=True):
                w.copy_(r)
        optimizer.step()
        with torch.no_grad():
            for w in binary:
                w.clamp_(-1, 1)
    print(epoch, loss.item())
