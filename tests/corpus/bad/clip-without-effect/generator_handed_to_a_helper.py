# A helper clips what it is handed: one generator for the whole run, which its first call uses up.
# source: none (a common mistake, written small)
# expect: clip-without-effect
import torch
from torch import nn


def update(optimizer, params, loss):
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, max_norm=0.5)  # <- clip-without-effect
    optimizer.step()


torch.manual_seed(1)
model = nn.GRU(5, 8, batch_first=True)
head = nn.Linear(8, 1)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=3e-3)
weights = (p for part in (model, head) for p in part.parameters())  # <- cause
for seq in torch.randn(12, 8, 7, 5):
    update(optimizer, weights, (head(model(seq)[0][:, -1]) - seq.sum((1, 2))[:, None]).square().mean())
