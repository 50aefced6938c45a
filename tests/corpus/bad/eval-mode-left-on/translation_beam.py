# A seq2seq model is put into eval mode to print a sample translation after each epoch; only the first epoch trains.
# source: joeynmt/joeynmt#184
# expect: eval-mode-left-on
import torch
from torch import nn


class Seq2Seq(nn.Module):
    def __init__(self, vocab=20, dim=16):
        super().__init__()
        self.src, self.trg = nn.Embedding(vocab, dim), nn.Embedding(vocab, dim)
        self.encoder, self.decoder = nn.GRU(dim, dim, batch_first=True), nn.GRU(dim, dim, batch_first=True)
        self.dropout, self.out = nn.Dropout(0.2), nn.Linear(dim, vocab)

    def forward(self, src, trg):
        _, h = self.encoder(self.dropout(self.src(src)))
        dec, _ = self.decoder(self.dropout(self.trg(trg)), h)
        return self.out(self.dropout(dec))


def greedy(model, src, max_len=4):
    model.eval()  # <- eval-mode-left-on
    ys = torch.zeros(len(src), 1, dtype=torch.long)
    with torch.no_grad():
        for _ in range(max_len):
            nxt = model(src, ys)[:, -1].argmax(-1, keepdim=True)
            ys = torch.cat([ys, nxt], dim=1)
    return ys[:, 1:]  # <- cause


torch.manual_seed(3)
src = torch.randint(1, 20, (64, 5))
trg = torch.cat([torch.zeros(64, 1, dtype=torch.long), src.flip(1)], dim=1)
model = Seq2Seq()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
model.train()  # <- cause
for epoch in range(3):
    for rows in torch.randperm(64).split(16):  # <- cause
        logits = model(src[rows], trg[rows, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), trg[rows, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f} sample {greedy(model, src[:1]).tolist()}")  # <- cause
