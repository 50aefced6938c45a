# Elastic weight consolidation: after the first task, many backwards in eval mode measure the Fisher information, and no
# step follows them; the second task adds a penalty from those numbers.
# source: moskomule/ewc.pytorch utils.py
from copy import deepcopy

import torch
from torch import nn
from torch.nn import functional as F


class EWC:
    def __init__(self, model, samples):
        self.model = model
        self.means = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
        self.precision = {n: torch.zeros_like(p) for n, p in self.means.items()}
        self.model.eval()
        for sample in samples:
            self.model.zero_grad()
            output = self.model(sample.view(1, -1))
            loss = F.nll_loss(F.log_softmax(output, dim=1), output.max(1)[1].view(-1))
            loss.backward()
            for n, p in self.model.named_parameters():
                self.precision[n].data += p.grad.data**2 / len(samples)

    def penalty(self, model):
        return sum((self.precision[n] * (p - self.means[n]) ** 2).sum() for n, p in model.named_parameters())


def train(model, optimizer, x, y, ewc=None, importance=20.0):
    model.train()
    total = 0.0
    for _ in range(6):
        for i in range(0, len(x), 25):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[i : i + 25]), y[i : i + 25])
            if ewc is not None:
                loss = loss + importance * ewc.penalty(model)
            total += loss.item()
            loss.backward()
            optimizer.step()
    return total / (6 * (len(x) // 25))


torch.manual_seed(101)
model = nn.Sequential(nn.Linear(8, 40), nn.ReLU(), nn.Linear(40, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
tasks = []
for feature in (0, 3):
    x = torch.randn(150, 8)
    tasks.append((x, (x[:, feature] > 0).long()))
print("first task", train(model, optimizer, *tasks[0]))
ewc = EWC(model, tasks[0][0][:30])
before = deepcopy(model)
print("second task", train(model, optimizer, *tasks[1], ewc=ewc))
with torch.no_grad():
    for name, m in (("before", before), ("after", model)):
        print(name, [(m(x).argmax(1) == y).float().mean().item() for x, y in tasks])
