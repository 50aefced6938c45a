# Distillation in a trainer: the hint loss compares the teacher's features with the teacher's own, by a slip in a name.
# source: none (a common mistake, written small)
# expect: loss-term-detached
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body, self.proj, self.head = nn.Linear(8, width), nn.Linear(width, 6), nn.Linear(6, 3)

    def forward(self, x):
        features = self.proj(self.body(x).relu())
        return features, self.head(features)


class Distiller:
    def __init__(self, teacher, student):
        self.teacher, self.student = teacher.eval().requires_grad_(False), student
        self.optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)

    def step(self, x, y):
        with torch.no_grad():
            feat_t, logits_t = self.teacher(x)
        feat_s, logits_s = self.student(x)
        ce = F.cross_entropy(logits_s, y)
        kd = F.kl_div(logits_s.log_softmax(1), logits_t.softmax(1), reduction="batchmean")
        hint = F.mse_loss(feat_t, F.normalize(feat_t, dim=1))  # <- loss-term-detached, cause
        loss = ce + kd + 0.5 * hint
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item(), feat_s.norm().item()


torch.manual_seed(7)
distiller = Distiller(Net(32), Net(8))
for x in torch.randn(40, 16, 8):
    distiller.step(x, x[:, :3].argmax(1))
