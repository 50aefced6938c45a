# A loop over heads runs backward() for each one's loss on features that all of them share, from the second update on.
# source: schelotto/Wasserstein-AutoEncoders#2
# expect: backward-twice
# raises: RuntimeError
import torch
from torch import nn

torch.manual_seed(76)
encoder, heads = nn.Sequential(nn.Linear(6, 12), nn.Tanh()), nn.ModuleList(nn.Linear(12, 1) for _ in range(2))
optimizer = torch.optim.SGD([*encoder.parameters(), *heads.parameters()], lr=0.1)
for i in range(10):
    x = torch.randn(16, 6)
    features = encoder(x)
    optimizer.zero_grad()
    for head in list(heads)[: 1 if i < 2 else 2]:
        loss = nn.functional.mse_loss(head(features), x[:, :1])
        loss.backward()  # <- backward-twice, cause
    optimizer.step()
    print(i, loss.item())
