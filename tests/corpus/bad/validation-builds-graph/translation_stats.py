# A sequence trainer whose validate() collects statistics from the model without switching gradients off.
# source: OpenNMT/OpenNMT-py#1141
# expect: validation-builds-graph
# severity: hint (it costs memory and time; the numbers are right)
import math

import torch
import torch.nn.functional as F
from torch import nn


class Seq2Seq(nn.Module):
    def __init__(self, vocab=15, size=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, size)
        self.encoder = nn.GRU(size, size, batch_first=True)
        self.decoder = nn.GRU(size, size, batch_first=True)
        self.generator = nn.Linear(size, vocab)

    def forward(self, src, tgt):
        _, enc_state = self.encoder(self.embed(src))
        dec_out, _ = self.decoder(self.embed(tgt), enc_state)
        return self.generator(dec_out)


class Trainer:
    def __init__(self, model, optim, valid_every=5):
        self.model, self.optim, self.valid_every = model, optim, valid_every

    def _compute_loss(self, outputs, target):
        return F.cross_entropy(outputs.flatten(0, 1), target.flatten(), reduction="sum")

    def train(self, train_iter, valid_iter):
        for step, (src, tgt) in enumerate(train_iter, 1):
            self.optim.zero_grad()
            loss = self._compute_loss(self.model(src, tgt[:, :-1]), tgt[:, 1:])
            loss.div(src.size(0)).backward()
            self.optim.step()
            if step % self.valid_every == 0:
                print(f"step {step} valid ppl {self.validate(valid_iter):.3f}")  # <- cause

    def validate(self, valid_iter):  # <- cause
        self.model.eval()
        n_words, total = 0, 0.0
        for src, tgt in valid_iter:  # <- cause
            outputs = self.model(src, tgt[:, :-1])  # <- validation-builds-graph, cause
            total += self._compute_loss(outputs, tgt[:, 1:]).item()
            n_words += tgt[:, 1:].numel()
        self.model.train()
        return math.exp(total / n_words)


torch.manual_seed(6)
corpus = torch.randint(0, 15, (25, 8, 6))
batches = [(src, src.flip(1)) for src in corpus]
model = Seq2Seq()
Trainer(model, torch.optim.Adam(model.parameters(), lr=5e-3)).train(batches[:20], batches[20:])
