# A character-level language model trained by truncated BPTT on one long text: hidden state carried and detached, the
# learning rate cut when validation stalls, the best weights reloaded for the test.
# source: pytorch/examples word_language_model/main.py, salesforce/awd-lstm-lm main.py
import argparse
import hashlib
import math
import os
import tempfile
import time

import torch
import torch.nn as nn

parser = argparse.ArgumentParser(description="RNN language model")
parser.add_argument("--model", default="LSTM", choices=["LSTM", "GRU"])
parser.add_argument("--nhid", type=int, default=40)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--clip", type=float, default=0.5)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--bptt", type=int, default=16)
parser.add_argument("--dropout", type=float, default=0.1)
parser.add_argument("--tied", action="store_true", default=True)
parser.add_argument("--seed", type=int, default=1111)

WORDS = ["the", "cat", "sat", "on", "the", "mat", "and", "the", "dog", "ate", "the", "hat"]


class Corpus:
    def __init__(self, length, seed):
        generator = torch.Generator().manual_seed(seed)
        text = " ".join(WORDS[i] for i in torch.randint(0, len(WORDS), (length,), generator=generator).tolist())
        self.letters = sorted(set(text))
        ids = torch.tensor([self.letters.index(c) for c in text])
        a, b = int(len(ids) * 0.8), int(len(ids) * 0.9)
        self.train, self.valid, self.test = ids[:a], ids[a:b], ids[b:]


class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, nhid, dropout, tied):
        super().__init__()
        self.rnn_type, self.nhid = rnn_type, nhid
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, nhid)
        self.rnn = getattr(nn, rnn_type)(nhid, nhid)
        self.decoder = nn.Linear(nhid, ntoken)
        if tied:
            self.decoder.weight = self.encoder.weight

    def forward(self, x, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(x)), hidden)
        return self.decoder(self.drop(output)).flatten(0, 1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        zero = weight.new_zeros(1, bsz, self.nhid)
        return (zero, zero.clone()) if self.rnn_type == "LSTM" else zero


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data[: nbatch * bsz].view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].reshape(-1)


def evaluate(model, source, criterion, args):
    model.eval()
    total_loss = 0.0
    hidden = model.init_hidden(source.size(1))
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, args.bptt):
            data, targets = get_batch(source, i, args.bptt)
            output, hidden = model(data, hidden)
            total_loss += len(data) * criterion(output, targets).item()
    return total_loss / (len(source) - 1)


def train(model, source, criterion, optimizer, args):
    model.train()
    total_loss, batches = 0.0, 0
    hidden = model.init_hidden(args.batch_size)
    for i in range(0, source.size(0) - 1, args.bptt):
        data, targets = get_batch(source, i, args.bptt)
        optimizer.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        total_loss += loss.item()
        batches += 1
    return total_loss / batches


if __name__ == "__main__":
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    corpus = Corpus(1200, args.seed)
    train_data, val_data, test_data = (batchify(d, args.batch_size) for d in (corpus.train, corpus.valid, corpus.test))
    model = RNNModel(args.model, len(corpus.letters), args.nhid, args.dropout, args.tied)
    criterion = nn.CrossEntropyLoss()
    lr, best_val_loss = args.lr, None
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    with tempfile.TemporaryDirectory() as folder:
        save = os.path.join(folder, "model.pt")
        try:
            for epoch in range(1, args.epochs + 1):
                start = time.time()
                train_loss = train(model, train_data, criterion, optimizer, args)
                val_loss = evaluate(model, val_data, criterion, args)
                assert time.time() >= start
                print(f"| epoch {epoch} | train {train_loss:.3f} | valid {val_loss:.3f} | ppl {math.exp(val_loss):.3f}")
                if best_val_loss is None or val_loss < best_val_loss:
                    torch.save(model.state_dict(), save)
                    best_val_loss = val_loss
                else:
                    lr /= 4.0
                    for group in optimizer.param_groups:
                        group["lr"] = lr
        except KeyboardInterrupt:
            print("Exiting from training early")
        model.load_state_dict(torch.load(save))
    print(f"| test {evaluate(model, test_data, criterion, args):.3f}")
    weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    print("digest:", hashlib.sha256(weights).hexdigest())
