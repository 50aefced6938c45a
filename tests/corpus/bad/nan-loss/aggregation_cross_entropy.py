# Aggregation cross-entropy: a character that the net rules out has probability 0, and 0 * log(0) is NaN.
# source: summerlvsong/Aggregation-Cross-Entropy#2
# expect: nan-loss
import torch
from torch import nn


class ACE(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, prediction, counts):
        time_steps = prediction.size(1)
        prediction = prediction.mean(1)
        counts = counts / time_steps
        return -(torch.log(prediction) * counts).sum(1).mean()  # <- cause


class Recognizer(nn.Module):
    def __init__(self, classes=6, hidden=12):
        super().__init__()
        self.lstm = nn.LSTM(8, hidden, batch_first=True)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x, alphabet):
        logits = self.out(self.lstm(x)[0])
        logits = logits.masked_fill(~alphabet[:, None], -1e4)
        return logits.softmax(-1)


def make_batch(digits_only, size=8, steps=10):
    text = torch.randint(0, 3 if digits_only else 6, (size, steps))
    alphabet = torch.ones(size, 6, dtype=torch.bool)
    if digits_only:
        alphabet[:, 3:] = False
    counts = nn.functional.one_hot(text, 6).sum(1).float()
    images = nn.functional.one_hot(text, 8).float() + 0.3 * torch.randn(size, steps, 8)
    return images, alphabet, counts


torch.manual_seed(1)
model, criterion = Recognizer(), ACE(6)
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
for i in range(20):
    images, alphabet, counts = make_batch(digits_only=i >= 12)
    optimizer.zero_grad()
    loss = criterion(model(images, alphabet), counts)
    loss.backward()  # <- nan-loss
    optimizer.step()
    if i % 4 == 0:
        print(f"[{i}] loss {loss.item():.4f}")
