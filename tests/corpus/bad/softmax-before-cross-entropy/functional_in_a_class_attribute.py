# A classifier calls softmax by an attribute of its class that is torch.nn.functional, and cross_entropy the same way.
# source: none (a common mistake, written small)
# expect: softmax-before-cross-entropy
import torch
import torch.nn.functional as fn
from torch import nn


class Classifier(nn.Module):
    ops = fn

    def __init__(self, classes):
        super().__init__()
        self.hidden, self.out = nn.Linear(7, 16), nn.Linear(16, classes)

    def forward(self, x):
        h = self.ops.leaky_relu(self.hidden(x))
        return self.ops.softmax(self.out(h), dim=-1)  # <- cause

    def loss(self, x, y):
        return self.ops.cross_entropy(self(x), y)  # <- softmax-before-cross-entropy


torch.manual_seed(0)
model = Classifier(4)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for x in torch.randn(30, 16, 7):
    optimizer.zero_grad()
    loss = model.loss(x, x[:, :4].argmax(1))
    loss.backward()
    optimizer.step()
