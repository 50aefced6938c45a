# Distillation: the teacher runs under no_grad, its softened probabilities are the target, and half of the loss is hard.
# source: none (a common pattern, written small)
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1)
teacher = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4)).eval()
student = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
temperature = 4.0
for x in torch.randn(60, 16, 6):
    with torch.no_grad():
        wanted = F.softmax(teacher(x) / temperature, dim=1)
    logits = student(x)
    soft = F.kl_div(F.log_softmax(logits / temperature, dim=1), wanted, reduction="batchmean") * temperature**2
    hard = F.cross_entropy(logits, x[:, :4].argmax(1))
    loss = 0.5 * soft + 0.5 * hard
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
