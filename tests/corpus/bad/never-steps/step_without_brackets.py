# A linear regression for beginners in which optimizer.step is named but not called.
# source: https://taourl.com/read-3032220.html
# expect: never-steps
import torch
import torch.nn as nn
import torch.optim as optim


class LinearRegression(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1, 1)

    def forward(self, x):
        return self.linear(x)


torch.manual_seed(0)
model = LinearRegression()
criterion = nn.MSELoss()
optimizer = optim.SGD(model.parameters(), lr=0.01)

hours = torch.arange(1.0, 13.0).view(-1, 1) / 4
marks = 2 * hours + 0.5 + 0.1 * torch.randn(12, 1)

for epoch in range(100):
    # forward
    predictions = model(hours)
    loss = criterion(predictions, marks)
    # backward
    optimizer.zero_grad()
    loss.backward()  # <- never-steps
    # update
    optimizer.step  # noqa: B018  # <- cause
    if (epoch + 1) % 25 == 0:
        w, b = model.linear.weight.item(), model.linear.bias.item()
        print(f"Epoch [{epoch + 1}/100], Loss: {loss.item():.4f}, w = {w:.3f}, b = {b:.3f}")
