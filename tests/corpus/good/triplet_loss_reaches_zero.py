# A triplet loss soon reaches exactly 0: whole micro-batches then add gradients of zeros, in windows of two.
# source: adambielski/siamese-triplet losses.py (TripletLoss with a margin), with gradient accumulation
import torch
from torch import nn

torch.manual_seed(62)
embed = nn.Linear(6, 4)
loss_fn = nn.TripletMarginLoss(margin=0.2)
optimizer = torch.optim.Adam(embed.parameters(), lr=1e-2)
centres = torch.eye(6) * 8
for i in range(24):
    anchor, positive = (centres[0] + 0.1 * torch.randn(5, 6) for _ in range(2))
    # one hard negative in a while, else all of them lie far beyond the margin
    negative = centres[0 if i % 8 == 1 else 3] + 0.1 * torch.randn(5, 6)
    loss = loss_fn(embed(anchor), embed(positive), embed(negative)) / 2
    loss.backward()
    if i % 2 == 1:
        optimizer.step()
        optimizer.zero_grad()
        print(i, loss.item())
