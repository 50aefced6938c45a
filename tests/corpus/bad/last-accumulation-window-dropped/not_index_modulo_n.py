# Functions, one pass over the data: `if not index % n` is true for the first batch, too.
# source: none (a common mistake, written small)
# expect: last-accumulation-window-dropped
# severity: hint (one update is too small)
# cause: not found (the condition is a `not` of the remainder)
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def compute_loss(encoder, head, ids):
    return F.cross_entropy(head(encoder(ids).mean(1)), ids.sum(1) % 3)


def train(encoder, head, loader, n=5):
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
    total = 0.0
    for index, ids in enumerate(loader):
        loss = compute_loss(encoder, head, ids)
        (loss / n).backward()
        total += loss.item()
        if not index % n:  # <- cause
            optimizer.step()  # <- last-accumulation-window-dropped
            optimizer.zero_grad()
    return total / len(loader)


torch.manual_seed(2)
print(train(nn.Embedding(12, 8), nn.Linear(8, 3), DataLoader(torch.randint(0, 12, (408, 4)), batch_size=8)))
