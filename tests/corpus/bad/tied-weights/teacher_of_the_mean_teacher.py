# A mean teacher in a class: student and teacher are the same module, so they always agree.
# source: none (a common mistake, written small)
# expect: tied-weights
# severity: hint (a slow copy is told by its name only)
import torch
from torch import nn


class MeanTeacher(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.student = net
        self.teacher = net  # <- cause

    def loss(self, x, y):
        guess = self.student(x + 0.1 * torch.randn_like(x))
        wanted = self.teacher(x)  # <- tied-weights
        return nn.functional.cross_entropy(guess, y) + (guess - wanted).square().mean()


torch.manual_seed(3)
both = MeanTeacher(nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2)))
optimizer = torch.optim.SGD(both.parameters(), lr=0.1)
for x in torch.randn(12, 16, 5):
    optimizer.zero_grad()
    both.loss(x, (x[:, 0] > 0).long()).backward()
    optimizer.step()
