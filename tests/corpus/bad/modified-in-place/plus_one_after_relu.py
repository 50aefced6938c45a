# An image encoder shifts what its ReLU has returned in place; backward() needs that output as it was.
# source: https://discuss.pytorch.org/t/encounter-the-runtimeerror-one-of-the-variables-needed-for-gradient-computation-has-been-modified-by-an-inplace-operation/836
# expect: modified-in-place
# raises: RuntimeError
import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        h += 1  # <- cause
        return self.fc2(h)


torch.manual_seed(11)
model = Encoder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
running, count = 0.0, 0
for x in torch.randn(40, 8).split(8):
    loss = (model(x) - x[:, :4]).square().mean()
    optimizer.zero_grad()
    loss.backward()  # <- modified-in-place
    optimizer.step()
    running += loss.item()
    count += 1
print(running / count)
