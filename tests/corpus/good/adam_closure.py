# Adam with a closure: step(closure) runs the forward and the backward itself, under the optimizer's own no_grad.
# source: docs.pytorch.org/docs/stable/optim.html (optimizer.step(closure))
from functools import partial

import torch
from torch.nn import Embedding, Linear, Module
from torch.nn.functional import cross_entropy
from torch.optim import NAdam


class SkipGram(Module):
    def __init__(self, words, dim):
        super().__init__()
        self.centre = Embedding(words, dim)
        self.context = Linear(dim, words, bias=False)

    def forward(self, word):
        return self.context(self.centre(word))


def closure(model, optimizer, word, near):
    optimizer.zero_grad()
    loss = cross_entropy(model(word), near)
    loss.backward()
    return loss


torch.manual_seed(22)
corpus = torch.arange(400) % 13
model = SkipGram(13, 6)
optimizer = NAdam(model.parameters(), lr=0.05)
for i in range(40):
    at = torch.randint(1, 398, (32,))
    loss = optimizer.step(partial(closure, model, optimizer, corpus[at], corpus[at + 1]))
    if i % 10 == 0:
        print(i, float(loss))
