# Distillation where both sides of the divergence are the teacher's logits: the student has no part in the term.
# source: none (a public bug report, written small)
# expect: loss-term-detached
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
large = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 5)).eval()
small = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 5))
optimizer = torch.optim.Adam(small.parameters(), lr=5e-3)
temperature, kl = 5.0, nn.KLDivLoss(reduction="batchmean")
for _step in range(80):
    data = torch.randn(32, 12)
    target = data[:, :5].argmax(1)
    if True:
        large_logits = large(data)
    output = small(data)
    soft_targets = F.softmax(large_logits / temperature, dim=-1)
    soft_prob = F.log_softmax(large_logits / temperature, dim=-1)  # <- cause
    soft_loss = kl(soft_prob, soft_targets)  # <- loss-term-detached, cause
    label_loss = F.cross_entropy(output, target)
    loss = temperature**2 * soft_loss + 0.5 * label_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
