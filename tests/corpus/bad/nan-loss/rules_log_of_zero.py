# A mixture's likelihood is computed as log(p): as soon as a probability rounds to 0, the loss is infinite and the next
# update makes every weight NaN.
# source: https://discuss.pytorch.org/t/getting-nan-after-first-iteration-with-custom-loss/25929
# expect: nan-loss
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 4)
x[40] = 60.0
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for batch in x.split(8):
        mean = model(batch).squeeze(1)
        density = torch.exp(-0.5 * (batch[:, 0] - mean) ** 2)
        nll = -torch.log(density).mean()  # <- cause
        optimizer.zero_grad()
        nll.backward()  # <- nan-loss
        optimizer.step()
    print(epoch, nll.item())
