# Windows of accumulation continue over the end of an epoch: the pending batches belong to the next update on purpose,
# and what is left at the very end is stepped.
# source: OpenRLHF/OpenRLHF#1337 (gradients kept across epoch boundaries)
import torch
from torch import nn, optim
from torch.utils.data import BatchSampler, RandomSampler

torch.manual_seed(72)


class Trainer:
    accumulate_every = 4

    def __init__(self, model, data, target):
        self.model, self.data, self.target = model, data, target
        self.optim = optim.SGD(model.parameters(), lr=0.2)
        self.micro, self.updates = 0, 0

    def update(self, count):
        for p in self.model.parameters():
            p.grad.div_(count)
        self.optim.step()
        self.optim.zero_grad()
        self.updates += 1

    def epoch(self):
        for rows in BatchSampler(RandomSampler(self.data), 12, drop_last=False):
            out = self.model(self.data[rows])
            loss = nn.functional.binary_cross_entropy(out, self.target[rows])
            loss.backward()
            self.micro += 1
            if self.micro % self.accumulate_every == 0:
                self.update(self.accumulate_every)
        return loss.item()

    def finish(self):
        if self.micro % self.accumulate_every:
            self.update(self.micro % self.accumulate_every)


x = torch.rand(120, 4)
y = (x[:, :1] > x[:, 1:2]).float()
trainer = Trainer(nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 1), nn.Sigmoid()), x, y)
print([round(trainer.epoch(), 3) for _ in range(9)])
trainer.finish()
print(trainer.micro, trainer.updates)
