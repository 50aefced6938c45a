# A distillation in a trainer: nn.KLDivLoss is given the student's sigmoid scores, and not the logarithms of shares.
# source: none (a common mistake, written small)
# expect: softmax-before-cross-entropy
# cause: not found (the sigmoid is a layer)
import torch
from torch import nn


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.squash = nn.Linear(6, 4), nn.Sigmoid()

    def forward(self, x):
        return self.squash(self.linear(x))  # <- cause


class Trainer:
    def __init__(self, teacher):
        self.teacher, self.net = teacher, Student()
        self.kl = nn.KLDivLoss(reduction="batchmean")
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05)

    def learn(self, x):
        with torch.no_grad():
            soft = torch.softmax(self.teacher(x), dim=1)
        loss = self.kl(self.net(x), soft)  # <- softmax-before-cross-entropy
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(2)
trainer = Trainer(nn.Linear(6, 4))
print([trainer.learn(x) for x in torch.randn(30, 16, 6)][::10])
