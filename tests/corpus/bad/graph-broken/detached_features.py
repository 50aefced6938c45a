# An encoder and a classifier under one optimizer, but the features are detached, so the encoder never learns.
# source: speechbrain/speechbrain#1396
# expect: graph-broken
# severity: hint (some cut off a part on purpose)
import torch
import torch.nn.functional as F
from torch import nn, optim

torch.manual_seed(3)


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(4, 12, 3, padding=1), nn.ReLU(), nn.Conv1d(12, 12, 3, padding=1))
        self.rnn = nn.GRU(12, 16, batch_first=True)
        self.ctc_lin = nn.Linear(16, 6)

    def forward(self, wavs):
        feats = self.enc(wavs)
        feats = feats.detach().transpose(1, 2)  # <- cause
        out, _ = self.rnn(feats)
        return self.ctc_lin(out[:, -1])


model = Recognizer()
optimizer = optim.Adadelta(model.parameters(), lr=0.5, rho=0.95, eps=1e-8)
wavs = torch.randn(60, 4, 10)
tokens = wavs.sum(2)[:, :4].argmax(1)
for epoch in range(3):
    model.train()
    for sel in torch.randperm(60).split(12):
        logits = model(wavs[sel])
        loss = F.cross_entropy(logits, tokens[sel])
        model.zero_grad()
        loss.backward()  # <- graph-broken
        optimizer.step()
    print(f"epoch {epoch}: train loss {loss.item():.4f}")
