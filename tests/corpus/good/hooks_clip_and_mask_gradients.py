# Hooks edit gradients: rows of a pretrained embedding get none, the rest is clamped value by value as it arrives; the
# loop has no clip. Weight decay is off for the embedding, or the frozen rows would shrink.
# source: huggingface/diffusers#855, kohjingyu/fromage#6
import torch
from torch import nn

torch.manual_seed(241)
n_old, n_new = 20, 4
embedding = nn.Embedding(n_old + n_new, 10)
rnn, out = nn.LSTM(10, 20, batch_first=True), nn.Linear(20, n_old + n_new)
new_rows = (torch.arange(n_old + n_new) >= n_old).float().unsqueeze(1)
embedding.weight.register_hook(lambda grad: grad * new_rows)
for p in [*rnn.parameters(), *out.parameters()]:
    p.register_hook(lambda grad: grad.clamp(-0.5, 0.5))
groups = [
    {"params": embedding.parameters(), "weight_decay": 0.0},
    {"params": [*rnn.parameters(), *out.parameters()], "weight_decay": 0.01},
]
optimizer = torch.optim.AdamW(groups, lr=1e-2)
before = embedding.weight.detach().clone()
cycle = torch.randperm(n_old + n_new)
for step in range(80):
    start = torch.randint(0, n_old + n_new, (16, 1))
    text = cycle[(start + torch.arange(9)) % (n_old + n_new)]
    hidden, _ = rnn(embedding(text[:, :-1]))
    loss = nn.functional.cross_entropy(out(hidden).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
moved = (embedding.weight.detach() - before).abs().amax(1)
print("old rows moved by", moved[:n_old].max().item(), "new rows by", moved[n_old:].min().item())
