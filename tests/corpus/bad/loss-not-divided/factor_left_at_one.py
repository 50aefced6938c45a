# A trainer divides by the number of its processes, which is 1, where it should divide by the batches of a window.
# source: none (a common mistake, written small)
# expect: loss-not-divided
# severity: hint (a smaller learning rate makes up for it)
import torch
from torch import nn


class Trainer:
    world_size = 1

    def __init__(self, net, every=5):
        self.net, self.every, self.count = net, every, 0
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def training_step(self, x):
        return nn.functional.cross_entropy(self.net(x), x[:, :3].argmax(1))

    def fit(self, batches):
        for x in batches:
            loss = self.training_step(x) / self.world_size  # <- cause
            loss.backward()  # <- loss-not-divided, cause
            self.count += 1
            if self.count % self.every == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()


torch.manual_seed(0)
Trainer(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))).fit(torch.randn(60, 8, 6))
