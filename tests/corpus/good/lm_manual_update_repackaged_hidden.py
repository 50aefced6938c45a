# A word-level language model: hidden state carried over batches and detached by hand, clipping, and the update made by
# p.data.add_(p.grad); tied embedding and decoder weights; the learning rate is cut by hand when validation stalls.
# source: pytorch/examples word_language_model/main.py (--tied)
import torch
import torch.nn as nn


class RNNModel(nn.Module):
    def __init__(self, ntoken, nhid):
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.encoder = nn.Embedding(ntoken, nhid)
        self.rnn = nn.LSTM(nhid, nhid, 2, dropout=0.1)
        self.decoder = nn.Linear(nhid, ntoken)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

    def forward(self, x, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(x)), hidden)
        return self.decoder(self.drop(output)).flatten(0, 1), hidden

    def init_hidden(self, bsz):
        return torch.zeros(2, bsz, 24), torch.zeros(2, bsz, 24)


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


torch.manual_seed(42)
corpus = (torch.arange(1000) % 12).view(5, -1).t().contiguous()
model, criterion, bptt, lr = RNNModel(12, 24), nn.CrossEntropyLoss(), 20, 5.0


def evaluate(source):
    model.eval()
    total_loss, hidden = 0.0, model.init_hidden(5)
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, bptt):
            data, targets = source[i : i + bptt][:-1], source[i + 1 : i + bptt].reshape(-1)
            output, hidden = model(data, hidden)
            hidden = repackage_hidden(hidden)
            total_loss += len(data) * criterion(output, targets).item()
    return total_loss / (len(source) - 1)


def train(source):
    model.train()
    hidden = model.init_hidden(5)
    for i in range(0, source.size(0) - 1, bptt):
        data, targets = source[i : i + bptt][:-1], source[i + 1 : i + bptt].reshape(-1)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        criterion(output, targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)


best_val_loss = None
for epoch in range(5):
    train(corpus[:160])
    val_loss = evaluate(corpus[160:])
    if not best_val_loss or val_loss < best_val_loss:
        best_val_loss = val_loss
    else:
        lr /= 4.0
    print(epoch, f"valid loss {val_loss:.3f} lr {lr}")
