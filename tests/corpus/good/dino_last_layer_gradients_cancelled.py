# DINO: teacher and student see crops, the teacher's softmax is centred, sharpened and detached, and in the first epoch
# the gradients of the student's last layer are set to None after backward, so that the step passes that layer over.
# source: facebookresearch/dino main_dino.py, utils.py (cancel_gradients_last_layer)
import copy

import torch
from torch import nn

torch.manual_seed(252)


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 16))
        self.last_layer = nn.Linear(16, 24, bias=False)

    def forward(self, x):
        return self.last_layer(nn.functional.normalize(self.body(x), dim=-1))


student = Student()
teacher = copy.deepcopy(student).requires_grad_(False)
center = torch.zeros(24)
optimizer = torch.optim.AdamW(student.parameters(), lr=5e-3)
classes = 2 * torch.randn(5, 12)
for epoch in range(4):
    for _ in range(15):
        x = classes[torch.randint(0, 5, (32,))]
        views = [x + 0.3 * torch.randn_like(x) for _ in range(3)]
        student_out = [student(v) / 0.1 for v in views]
        with torch.no_grad():
            raw = [teacher(v) for v in views[:2]]
            targets = [((t - center) / 0.04).softmax(-1) for t in raw]
        terms = [
            -(q * s.log_softmax(-1)).sum(-1).mean()
            for i, q in enumerate(targets)
            for j, s in enumerate(student_out)
            if i != j
        ]
        loss = sum(terms) / len(terms)
        optimizer.zero_grad()
        loss.backward()
        if epoch < 1:
            for p in student.last_layer.parameters():
                p.grad = None
        optimizer.step()
        with torch.no_grad():
            center = 0.9 * center + 0.1 * torch.cat(raw).mean(0)
            torch._foreach_lerp_(list(teacher.parameters()), list(student.parameters()), 0.02)
    print(epoch, f"loss {loss.item():.4f} center {center.norm().item():.3f}")
