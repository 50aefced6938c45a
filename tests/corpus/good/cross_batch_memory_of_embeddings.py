# Metric learning with a memory: embeddings of earlier batches are kept, detached, and compared with the new ones.
# source: KevinMusgrave/pytorch-metric-learning src/pytorch_metric_learning/losses/cross_batch_memory.py
from collections import deque

import torch
import torch.nn.functional as F

torch.manual_seed(60)
net = torch.nn.Sequential(torch.nn.Linear(6, 24), torch.nn.ReLU(), torch.nn.Linear(24, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
memory = deque(maxlen=6)
history = []


def contrastive(query, labels, reference, ref_labels, margin=0.5):
    distance = 1 - query @ reference.t()
    same = labels[:, None] == ref_labels[None]
    return distance[same].mean() + F.relu(margin - distance[~same]).mean()


for _ in range(50):
    labels = torch.randint(0, 4, (20,))
    data = torch.randn(20, 6) + F.one_hot(labels, 6) * 2
    embeddings = F.normalize(net(data))
    memory.append((embeddings.detach(), labels))
    keys, key_labels = (torch.cat(part) for part in zip(*memory, strict=True))
    loss = contrastive(embeddings, labels, embeddings, labels) + contrastive(embeddings, labels, keys, key_labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.detach())
print(torch.stack(history[:10]).mean().item(), torch.stack(history[-10:]).mean().item())
