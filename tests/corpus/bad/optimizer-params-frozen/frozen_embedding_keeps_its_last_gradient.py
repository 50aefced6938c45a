# An embedding is frozen after a warm-up; only the other layers are cleared, so its last gradient is used at each step.
# source: none (a common mistake, written small)
# expect: optimizer-params-frozen
# cause: not found (freezing, clearing and the optimizer's groups are all places to mend it)
import torch
from torch import nn

torch.manual_seed(1)
embed, head = nn.Embedding(10, 6), nn.Linear(6, 2)
optimizer = torch.optim.SGD([{"params": embed.parameters()}, {"params": head.parameters()}], lr=0.1, momentum=0.5)


def train(epochs, frozen):
    for p in embed.parameters():
        p.requires_grad = not frozen  # <- cause
    for _ in range(epochs):
        ids = torch.randint(0, 10, (16,))
        head.zero_grad()
        if not frozen:
            embed.zero_grad()
        nn.functional.cross_entropy(head(embed(ids)), ids % 2).backward()
        optimizer.step()  # <- optimizer-params-frozen


train(10, frozen=False)
train(20, frozen=True)
