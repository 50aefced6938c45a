# A character model that clips right after zero_grad and before backward: it clips nothing.
# source: a common pattern; documented in https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
# expect: clip-without-effect
import torch
from torch import nn, optim
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(2)
text = torch.randint(0, 26, (600,))
bptt, bsz, clip = 12, 5, 0.1
data = text.view(bsz, -1).t().contiguous()
model = nn.ModuleDict({"drop_in": nn.Embedding(26, 16), "rnn": nn.LSTM(16, 20), "decoder": nn.Linear(20, 26)})
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=1.0)


def repackage_hidden(h):
    return tuple(v.detach() for v in h)


hidden = (torch.zeros(1, bsz, 20), torch.zeros(1, bsz, 20))
total = 0.0
for n, i in enumerate(range(0, data.size(0) - 1, bptt)):
    seq_len = min(bptt, data.size(0) - 1 - i)
    inputs, targets = data[i : i + seq_len], data[i + 1 : i + 1 + seq_len].reshape(-1)
    hidden = repackage_hidden(hidden)
    output, hidden = model["rnn"](model["drop_in"](inputs), hidden)
    loss = criterion(model["decoder"](output).view(-1, 26), targets)
    model.zero_grad()
    clip_grad_norm_(model.parameters(), clip)  # <- clip-without-effect, cause
    loss.backward()
    optimizer.step()
    total += loss.item()
    if n % 4 == 0:
        print(f"batch {n} loss {total / (n + 1):.3f}")
