# The accuracy before training is measured in eval mode, and the model stays in it for the whole training.
# source: discuss.pytorch.org/t/model-train-and-model-eval-vs-model-and-model-eval/5744
# expect: eval-mode-left-on
import torch
from torch import nn, optim


class Tagger(nn.Module):
    def __init__(self, vocab=40, tags=5):
        super().__init__()
        self.embedding = nn.Embedding(vocab, 16)
        self.lstm = nn.LSTM(16, 12, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.5)
        self.fc = nn.Linear(24, tags)

    def forward(self, text):
        outputs, _ = self.lstm(self.dropout(self.embedding(text)))
        return self.fc(self.dropout(outputs))


def evaluate(model, iterator):
    model.eval()  # <- eval-mode-left-on
    with torch.no_grad():
        right = sum((model(text).argmax(-1) == tags).float().mean().item() for text, tags in iterator)
    return right / len(iterator)


torch.manual_seed(5)
text = torch.randint(0, 40, (80, 7))
data = list(zip(text.split(10), (text % 5).split(10), strict=True))
model = Tagger()
optimizer = optim.Adam(model.parameters(), lr=5e-3)
print(f"Accuracy before training: {evaluate(model, data[6:]):.3f}")  # <- cause
for epoch in range(3):  # <- cause
    for words, tags in data[:6]:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), tags.flatten())
        loss.backward()
        optimizer.step()
    print(f"Epoch {epoch + 1} loss {loss.item():.3f}")
