# After an error about a missing gradient, the value of the loss was put into a new tensor that requires one.
# source: https://discuss.pytorch.org/t/element-0-of-tensors-does-not-require-grad-and-does-not-have-a-grad-fn/32908
# expect: graph-broken
import torch
from torch import nn

torch.manual_seed(8)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
inputs = torch.randn(48, 6)
labels = inputs[:, :3].argmax(1)
for epoch in range(4):
    for x, y in zip(inputs.split(12), labels.split(12), strict=True):
        optimizer.zero_grad()
        outputs = model(x)
        loss = criterion(outputs, y)
        loss = torch.tensor(loss.item(), requires_grad=True)  # <- cause
        loss.backward()  # <- graph-broken
        optimizer.step()
    print(epoch, loss.item())
