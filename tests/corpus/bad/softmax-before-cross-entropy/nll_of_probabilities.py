# A digit classifier returns softmax, and its loss is nn.NLLLoss, which takes log-probabilities.
# source: none (a common mistake, written small)
# expect: softmax-before-cross-entropy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 4, 3), nn.Linear(4 * 16, 10)

    def forward(self, x):
        x = torch.relu(self.conv(x)).flatten(1)
        return torch.softmax(self.fc(x), dim=1)  # <- cause


torch.manual_seed(5)
images = torch.rand(128, 1, 6, 6)
loader = DataLoader(TensorDataset(images, (images.mean((1, 2, 3)) * 20).long() % 10), batch_size=16)
model, criterion = Digits(), nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(3):
    for batch, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(batch), labels)  # <- softmax-before-cross-entropy
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
