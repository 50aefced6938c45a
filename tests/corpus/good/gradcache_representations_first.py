# GradCache: all representations without a graph, one backward on them alone, then each part again with a graph and the
# cached gradient as the argument of its backward.
# source: luyug/GradCache src/grad_cache/grad_cache.py
import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

torch.manual_seed(73)
query_encoder = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 8))
passage_encoder = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 8))
optimizer = torch.optim.Adam([*query_encoder.parameters(), *passage_encoder.parameters()], lr=5e-3)


def forward_no_grad(encoder, chunks):
    with torch.no_grad():
        return torch.cat([normalize(encoder(c), dim=1) for c in chunks])


def build_cache(*reps):
    reps = [r.detach().requires_grad_() for r in reps]
    scores = reps[0] @ reps[1].t() / 0.1
    loss = cross_entropy(scores, torch.arange(len(scores)))
    loss.backward()
    return [r.grad for r in reps], loss.detach()


def forward_backward(encoder, chunks, cached):
    for chunk, grad in zip(chunks, cached.split(len(chunks[0])), strict=True):
        reps = normalize(encoder(chunk), dim=1)
        torch.autograd.backward(reps, grad)


for step in range(30):
    key = torch.randn(48, 12)
    queries, passages = (key + 0.3 * torch.randn(48, 12)).split(16), key.split(12)
    caches, loss = build_cache(forward_no_grad(query_encoder, queries), forward_no_grad(passage_encoder, passages))
    optimizer.zero_grad()
    forward_backward(query_encoder, queries, caches[0])
    forward_backward(passage_encoder, passages, caches[1])
    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
