# AWD-LSTM: the length of each chunk is random and the learning rate is scaled with it for this one step, then set
# back; activation regularisation uses the same outputs; the hidden state is repackaged.
# source: salesforce/awd-lstm-lm main.py
import random

import torch
from torch.nn import LSTM, Embedding, Linear, Module
from torch.nn.utils import clip_grad_norm_

random.seed(45)
torch.manual_seed(45)


class Net(Module):
    def __init__(self, ntoken=15, nhid=32):
        super().__init__()
        self.encoder, self.lstm = Embedding(ntoken, nhid), LSTM(nhid, nhid)
        self.decoder = Linear(nhid, ntoken)

    def forward(self, x, hidden):
        raw, hidden = self.lstm(self.encoder(x), hidden)
        dropped = torch.nn.functional.dropout(raw, 0.2, self.training)
        return self.decoder(dropped), hidden, raw, dropped


train_data = (torch.arange(1600) * 4 % 15).view(8, -1).t().contiguous()
model, bptt, alpha, beta = Net(), 20, 2.0, 1.0
params = list(model.parameters())
optimizer = torch.optim.ASGD(params, lr=5.0, t0=1e6, lambd=0.0)
for epoch in range(3):
    total_loss, batch, i = 0.0, 0, 0
    hidden = None
    while i < train_data.size(0) - 2:
        seq_len = min(max(5, int(random.gauss(bptt if random.random() < 0.95 else bptt / 2, 5))), bptt + 10)
        lr2 = optimizer.param_groups[0]["lr"]
        optimizer.param_groups[0]["lr"] = lr2 * seq_len / bptt
        model.train()
        seq_len = min(seq_len, len(train_data) - 1 - i)
        data, targets = train_data[i : i + seq_len], train_data[i + 1 : i + 1 + seq_len]
        hidden = None if hidden is None else tuple(h.detach() for h in hidden)
        optimizer.zero_grad()
        output, hidden, rnn_h, dropped_h = model(data, hidden)
        raw_loss = torch.nn.functional.cross_entropy(output.flatten(0, 1), targets.flatten())
        loss = raw_loss + alpha * dropped_h.pow(2).mean()
        loss = loss + beta * (rnn_h[1:] - rnn_h[:-1]).pow(2).mean()
        loss.backward()
        clip_grad_norm_(params, 0.25)
        optimizer.step()
        total_loss += raw_loss.data
        optimizer.param_groups[0]["lr"] = lr2
        batch += 1
        i += seq_len
    print(epoch, batch, f"{total_loss.item() / batch:.3f}")
