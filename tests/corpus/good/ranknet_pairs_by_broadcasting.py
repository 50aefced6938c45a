# Learning to rank: scores (N, 1) minus scores (1, N) give all pairs at once. The broadcast is the point; a mask picks
# the pairs in which one document is better.
# source: allegro/allRank allrank/models/losses/rankNet.py
import torch
from torch import nn

torch.manual_seed(218)
documents = torch.randn(24, 16, 7)
relevance = (documents @ torch.randn(7)).mul(1.5).round().clamp(0, 4)
scorer = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(scorer.parameters(), lr=5e-3)
bce = nn.BCEWithLogitsLoss()

for epoch in range(4):
    for query in torch.randperm(24):
        s = scorer(documents[query])
        grade = relevance[query].unsqueeze(1)
        s_diff = s - s.T
        better = grade > grade.T
        if not better.any():
            continue
        loss = bce(s_diff[better], torch.ones_like(s_diff[better]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        order = scorer(documents).squeeze(-1).argsort(1, descending=True)
        best = relevance.gather(1, order[:, :1]).mean()
    print(epoch, f"loss {loss.item():.4f} grade of the first hit {best.item():.2f}")
