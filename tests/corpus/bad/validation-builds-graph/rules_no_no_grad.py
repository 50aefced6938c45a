# Validation after each epoch in evaluation mode but with gradients on: every batch builds a graph for nothing.
# source: https://discuss.pytorch.org/t/model-eval-vs-with-torch-no-grad/19615
# expect: validation-builds-graph
# severity: hint (it costs memory and time, and the numbers are right)
import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(128, 8), torch.randint(0, 3, (128,))
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for start in range(0, 64, 16):
        optimizer.zero_grad()
        criterion(model(x[start : start + 16]), y[start : start + 16]).backward()
        optimizer.step()
    model.eval()  # <- cause
    right, total = 0, 0.0  # <- cause
    for start in range(64, 128, 8):  # <- cause
        out = model(x[start : start + 8])  # <- validation-builds-graph, cause
        total += criterion(out, y[start : start + 8]).item()
        right += (out.argmax(1) == y[start : start + 8]).sum().item()
    print(epoch, right, total)
