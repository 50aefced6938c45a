# A binary classifier that ends in sigmoid, trained with BCEWithLogitsLoss, which applies sigmoid itself.
# source: https://discuss.pytorch.org/t/bceloss-vs-bcewithlogitsloss/33586
# expect: sigmoid-before-bce-with-logits
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(8, 16), nn.Linear(16, 1)

    def forward(self, x):
        h = torch.relu(self.hidden(x))
        return torch.sigmoid(self.out(h)).squeeze(1)  # <- cause


torch.manual_seed(0)
x = torch.randn(96, 8)
y = (x[:, 0] > 0).float()
model, criterion = Net(), nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    for start in range(0, 96, 16):
        optimizer.zero_grad()
        loss = criterion(model(x[start : start + 16]), y[start : start + 16])  # <- sigmoid-before-bce-with-logits
        loss.backward()
        optimizer.step()
