# A trainer keeps its meters in a dictionary, and each averages loss tensors with their graphs.
# source: visionml/pytracking#313
# expect: graph-retained-memory-leak
import torch
from torch import nn


class AverageMeter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value):
        self.sum = self.sum + value  # <- graph-retained-memory-leak, cause
        self.count += 1

    @property
    def avg(self):
        return self.sum / self.count


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        self.stats = {"train": {"loss": AverageMeter()}}

    def update_stats(self, stats):
        for name, value in stats.items():
            self.stats["train"][name].update(value)  # <- cause

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.update_stats({"loss": loss})  # <- cause


torch.manual_seed(0)
trainer = Trainer(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
for _ in range(40):
    x = torch.randn(16, 4)
    trainer.step(x, x.sum(1, keepdim=True))
print(f"mean loss {trainer.stats['train']['loss'].avg.item():.4f}")
