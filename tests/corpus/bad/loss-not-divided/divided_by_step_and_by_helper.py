# A training step returns its loss divided by the window, and the class that goes back divides it once more.
# source: none (a common mistake, written small)
# expect: loss-not-divided
# severity: hint (a larger learning rate makes up for it)
import torch
from torch import nn


class Accumulator:
    def __init__(self, optimizer, steps):
        self.optimizer, self.steps, self.done = optimizer, steps, 0

    def backward(self, loss):
        loss = loss / self.steps  # <- cause
        loss.backward()  # <- loss-not-divided, cause
        self.done += 1
        if self.done % self.steps == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()


def training_step(model, ids, accumulate):
    logits = model(ids[:, :-1])
    return nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:]) / accumulate  # <- cause


torch.manual_seed(3)
model = nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 20))
accumulator = Accumulator(torch.optim.SGD(model.parameters(), lr=0.5), steps=4)
for ids in torch.randint(0, 20, (40, 6, 9)):
    accumulator.backward(training_step(model, ids, accumulate=4))
