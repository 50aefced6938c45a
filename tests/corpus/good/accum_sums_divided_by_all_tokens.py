# A language model on padded lines: each window's losses are sums, divided by the number of tokens of the whole window.
# source: none (a common pattern, written small)
import torch
from torch import nn


class LM(nn.Module):
    def __init__(self, words=24, dim=10):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(words, dim), nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, words)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


def padded(lines=4, longest=12):
    ids = torch.randint(1, 24, (lines, longest))
    return ids.masked_fill(torch.arange(longest) >= torch.randint(3, longest + 1, (lines, 1)), 0)


torch.manual_seed(7)
lm = LM()
optimizer = torch.optim.AdamW(lm.parameters(), lr=3e-3)
for _ in range(12):
    window = [padded() for _ in range(4)]
    tokens = sum((ids[:, 1:] != 0).sum() for ids in window)
    optimizer.zero_grad()
    for ids in window:
        logits = lm(ids[:, :-1]).flatten(0, 1)
        total = nn.functional.cross_entropy(logits, ids[:, 1:].flatten(), ignore_index=0, reduction="sum")
        (total / tokens).backward()
    optimizer.step()
