# Distillation with nn.KLDivLoss("batchmean") in a trainer that accumulates over three chunks of each batch.
# source: none (a common mistake, written small)
# expect: loss-not-divided
# severity: hint (a smaller learning rate makes up for it)
import torch
from torch import nn


class Distillation:
    def __init__(self, teacher, student, chunks=3):
        self.teacher, self.student, self.chunks = teacher.requires_grad_(False), student, chunks
        self.kl = nn.KLDivLoss(reduction="batchmean", log_target=True)
        self.optimizer = torch.optim.SGD(student.parameters(), lr=0.05)

    def run(self, batch):
        self.optimizer.zero_grad()
        for x in batch.chunk(self.chunks):
            wanted = self.teacher(x).log_softmax(1)
            loss = self.kl(self.student(x).log_softmax(1), wanted)  # <- cause
            loss.backward()  # <- loss-not-divided, cause
        self.optimizer.step()


torch.manual_seed(2)
distillation = Distillation(nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 5)), nn.Linear(6, 5))
for batch in torch.randn(12, 24, 6):
    distillation.run(batch)
