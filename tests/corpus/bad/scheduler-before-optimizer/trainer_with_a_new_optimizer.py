# A trainer that makes its own optimizer for the net, while the schedule that it is given belongs to another.
# source: none (a common mistake, written small)
# expect: scheduler-before-optimizer
import torch
from torch import nn


class Trainer:
    def __init__(self, net, schedule):
        self.net, self.schedule = net, schedule
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def fit(self, x, y, epochs):
        for _epoch in range(epochs):
            for xb, yb in zip(x.split(16), y.split(16), strict=True):
                self.optimizer.zero_grad()
                nn.functional.cross_entropy(self.net(xb), yb).backward()
                self.optimizer.step()
            self.schedule.step()  # <- scheduler-before-optimizer


torch.manual_seed(1)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
steps = torch.optim.lr_scheduler.StepLR(sgd, step_size=2, gamma=0.1)  # <- cause
x = torch.randn(64, 6)
Trainer(net, steps).fit(x, x[:, :3].argmax(1), epochs=5)
