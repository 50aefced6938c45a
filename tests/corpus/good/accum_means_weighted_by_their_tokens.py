# Padded batches in windows of four: each mean is multiplied by its own number of tokens, divided by the window's.
# source: none (a common pattern, written small)
import torch
from torch import nn


def padded(lines=4, longest=10):
    ids = torch.randint(1, 20, (lines, longest))
    labels = ids.masked_fill(torch.arange(longest) >= torch.randint(2, longest + 1, (lines, 1)), -100)
    return ids, labels, int((labels != -100).sum())


torch.manual_seed(4)
embed, head = nn.Embedding(20, 8), nn.Linear(8, 20)
optimizer = torch.optim.Adam([*embed.parameters(), *head.parameters()], lr=1e-2)
criterion = nn.CrossEntropyLoss(ignore_index=-100)
for _ in range(12):
    window = [padded() for _ in range(4)]
    total = sum(tokens for *_, tokens in window)
    optimizer.zero_grad()
    for ids, labels, tokens in window:
        loss = criterion(head(embed(ids)).flatten(0, 1), labels.flatten()) * tokens / total
        loss.backward()
    optimizer.step()
