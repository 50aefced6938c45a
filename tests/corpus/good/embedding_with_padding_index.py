# A classifier of padded words: the embedding has a padding_idx, whose row PyTorch sets to 0 when it is made.
# source: none (a common pattern, written small)
import torch
from torch import nn

torch.manual_seed(0)
embed, head = nn.Embedding(20, 8, padding_idx=0), nn.Linear(8, 2)
optimizer = torch.optim.Adam([*embed.parameters(), *head.parameters()], lr=1e-2)
for ids in torch.randint(0, 20, (40, 16, 5)):
    loss = nn.functional.cross_entropy(head(embed(ids).mean(1)), ids[:, 0] % 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
