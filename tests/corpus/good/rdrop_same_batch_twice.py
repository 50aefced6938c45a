# R-Drop: the same batch goes through the network twice in train mode, so that dropout makes two answers, and their
# difference is part of the loss.
# source: dropreg/R-Drop README.md
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(113)
model = nn.Sequential(nn.EmbeddingBag(40, 24), nn.ReLU(), nn.Dropout(0.3), nn.Linear(24, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)


def compute_kl_loss(p, q):
    p_loss = F.kl_div(F.log_softmax(p, dim=-1), F.softmax(q, dim=-1), reduction="none").sum()
    q_loss = F.kl_div(F.log_softmax(q, dim=-1), F.softmax(p, dim=-1), reduction="none").sum()
    return (p_loss + q_loss) / 2


for step in range(50):
    x = torch.randint(0, 40, (32, 7))
    label = ((x < 20).float().mean(1) > 0.5).long()
    logits = model(x)
    logits2 = model(x)
    ce_loss = 0.5 * (F.cross_entropy(logits, label) + F.cross_entropy(logits2, label))
    kl_loss = compute_kl_loss(logits, logits2) / len(x)
    loss = ce_loss + 0.5 * kl_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 12 == 0:
        print(step, f"ce {ce_loss.item():.4f} kl {kl_loss.item():.5f}")
