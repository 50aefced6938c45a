# No optimizer: the update is a loop over model.parameters() under no_grad, then model.zero_grad().
# source: pytorch/tutorials beginner_source/nn_tutorial.py
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(34)
x_train = torch.randn(320, 14)
y_train = x_train[:, :10].argmax(1)


class Mnist_Logistic(nn.Module):  # noqa: N801
    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(14, 10) / math.sqrt(14))
        self.bias = nn.Parameter(torch.zeros(10))

    def forward(self, xb):
        return xb @ self.weights + self.bias


model = Mnist_Logistic()
lr, epochs, bs, n = 0.5, 4, 32, len(x_train)


def fit():
    for _epoch in range(epochs):
        for i in range((n - 1) // bs + 1):
            start_i = i * bs
            end_i = start_i + bs
            xb, yb = x_train[start_i:end_i], y_train[start_i:end_i]
            pred = model(xb)
            loss = F.cross_entropy(pred, yb)
            loss.backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= p.grad * lr
                model.zero_grad()


print(F.cross_entropy(model(x_train), y_train).item())
fit()
print(F.cross_entropy(model(x_train), y_train).item())
