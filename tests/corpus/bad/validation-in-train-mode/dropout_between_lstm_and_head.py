# A sentiment model drops out with F.dropout between its LSTM and its head, and is scored by a function in eval mode.
# source: none (a common mistake, written small)
# expect: validation-in-train-mode
# severity: hint (sampling with dropout may be wanted)
import torch
import torch.nn.functional as F
from torch import nn, optim


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm = nn.Embedding(20, 8), nn.LSTM(8, 8, batch_first=True)
        self.fc = nn.Linear(8, 2)

    def forward(self, ids):
        _, (hidden, _) = self.lstm(self.embed(ids))
        hidden = F.dropout(hidden[-1], p=0.4)  # <- validation-in-train-mode, cause
        return self.fc(hidden)


def evaluate(model, ids, labels):
    model.eval()
    with torch.no_grad():
        return F.cross_entropy(model(ids), labels).item()


torch.manual_seed(6)
model = Sentiment()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
ids = torch.randint(0, 20, (64, 5))
labels = (ids.sum(1) > 50).long()
for epoch in range(4):
    model.train()
    for rows in torch.randperm(48).split(12):
        optimizer.zero_grad()
        F.cross_entropy(model(ids[rows]), labels[rows]).backward()
        optimizer.step()
    print(epoch, evaluate(model, ids[48:], labels[48:]))
