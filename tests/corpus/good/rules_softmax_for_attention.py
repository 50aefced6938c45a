# Attention weights and an accuracy from softmax, and a teacher's probabilities as soft targets of cross_entropy: none
# of these softmaxes comes before the loss's own.
# source: https://pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html
import torch
import torch.nn.functional as F
from torch import nn


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.head = nn.Linear(6, 1), nn.Linear(6, 4)

    def forward(self, tokens):
        weights = torch.softmax(self.score(tokens), dim=1)
        return self.head((weights * tokens).sum(1))


torch.manual_seed(0)
x = torch.randn(96, 5, 6)
teacher, model = Pooled(), Pooled()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(3):
    for tokens in x.split(16):
        with torch.no_grad():
            soft = F.softmax(teacher(tokens) / 2, dim=1)
        logits = model(tokens)
        distilled = F.kl_div(F.log_softmax(logits / 2, dim=1), soft, reduction="batchmean")
        loss = F.cross_entropy(logits, soft) + distilled
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        confidence = F.softmax(logits, dim=1).max(1).values.mean().item()
print(confidence)
