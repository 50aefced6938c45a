# The backbone is frozen, yet the optimizer is given model.parameters(): only the new classifier has gradients.
# source: pytorch/tutorials beginner_source/blitz/autograd_tutorial.py
import torch
from torch import nn, optim

torch.manual_seed(47)
model = nn.Sequential()
model.add_module("backbone", nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU()))
model.add_module("fc", nn.Linear(32, 100))

# Freeze all the parameters in the network, then replace the classifier
for param in model.parameters():
    param.requires_grad = False
model.fc = nn.Linear(32, 5)

# Although all parameters are registered in the optimizer, only the classifier's compute gradients
optimizer = optim.SGD(model.parameters(), lr=5e-2, momentum=0.9)
x = torch.randn(200, 12)
y = x[:, :5].argmax(dim=1)
for epoch in range(5):
    for start in range(0, 200, 40):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[start : start + 40]), y[start : start + 40])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
