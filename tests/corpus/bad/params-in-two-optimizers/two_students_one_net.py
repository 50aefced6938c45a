# Two students taught by one another, and a slip in the second optimizer: it holds the first student's weights again.
# source: YingZhangDUT/Deep-Mutual-Learning trainer.py (one optimizer for each student), with the wrong student put in
# expect: params-in-two-optimizers
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(8)
first = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 3))
second = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))
first_optimizer = torch.optim.SGD(first.parameters(), lr=0.1, momentum=0.9)
second_optimizer = torch.optim.SGD(first.parameters(), lr=0.05, momentum=0.9)  # <- params-in-two-optimizers, cause

for step in range(16):
    x = torch.randn(32, 6)
    y = x[:, :3].argmax(1)
    one, two = first(x), second(x)
    first_loss = F.cross_entropy(one, y)
    first_optimizer.zero_grad()
    first_loss.backward()
    first_optimizer.step()

    one = first(x)
    agreement = F.mse_loss(two.softmax(1), one.softmax(1))
    second_loss = F.cross_entropy(two, y) + agreement
    second_optimizer.zero_grad()
    second_loss.backward()
    second_optimizer.step()
    if step % 5 == 0:
        print(step, first_loss.item(), second_loss.item())
