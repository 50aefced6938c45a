# A small language model on padded lines, in windows of four: each loss is a mean over its own tokens without padding.
# source: none (a common mistake, written small)
# expect: loss-not-divided
# severity: hint (each batch may be meant to count the same)
import torch
from torch import nn

PAD = 0


class LanguageModel(nn.Module):
    def __init__(self, words=30, dim=12):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.rnn, self.head = nn.GRU(dim, dim, batch_first=True), nn.Linear(dim, words)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


def padded(lines, longest):
    ids = torch.randint(1, 30, (lines, longest))
    lengths = torch.randint(3, longest + 1, (lines, 1))
    return ids.masked_fill(torch.arange(longest) >= lengths, PAD)


torch.manual_seed(5)
model = LanguageModel()
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(48):
    ids = padded(4, longest=16)
    logits = model(ids[:, :-1])
    loss = criterion(logits.reshape(-1, 30), ids[:, 1:].reshape(-1)) / 4  # <- cause
    loss.backward()  # <- loss-not-divided, cause
    if (step + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
