# A tagger: probabilities and tags are both flattened by view() in the call of the loss, after a softmax of torch as T.
# source: none (a common mistake, written small)
# expect: softmax-before-cross-entropy
import torch
from torch import nn

T = torch


class Tagger(nn.Module):
    def __init__(self, words=25, tags=5):
        super().__init__()
        self.embed = nn.Embedding(words, 12)
        self.rnn, self.out = nn.GRU(12, 12, batch_first=True), nn.Linear(12, tags)

    def forward(self, ids):
        return self.out(self.rnn(self.embed(ids))[0])


def train(tagger, sentences, criterion):
    optimizer = T.optim.Adam(tagger.parameters(), lr=5e-3)
    for ids in sentences:
        tags = ids % 5
        probs = T.softmax(tagger(ids), dim=2)  # <- cause
        loss = criterion(probs.view(-1, probs.shape[-1]), tags.view(-1))  # <- softmax-before-cross-entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


T.manual_seed(1)
train(Tagger(), T.randint(0, 25, (25, 8, 6)), nn.CrossEntropyLoss())
