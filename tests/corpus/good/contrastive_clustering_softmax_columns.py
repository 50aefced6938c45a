# Contrastive clustering: the columns of softmaxed assignments are compared with each other by cosine, and these
# similarities are the logits of a cross-entropy. The softmax belongs to the assignments, not to the loss.
# source: Yunfan-Li/Contrastive-Clustering modules/contrastive_loss.py
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(214)
n_clusters, batch_size = 4, 32
centres = 3 * torch.randn(n_clusters, 6)
encoder = nn.Sequential(nn.Linear(6, 32), nn.ReLU())
instance_projector = nn.Linear(32, 8)
cluster_projector = nn.Sequential(nn.Linear(32, n_clusters), nn.Softmax(dim=1))
modules = nn.ModuleList([encoder, instance_projector, cluster_projector])
optimizer = torch.optim.Adam(modules.parameters(), lr=3e-3)


def info_nce(a, b, temperature):
    n = len(a)
    z = F.normalize(torch.cat([a, b]), dim=1)
    logits = z @ z.T / temperature
    logits = logits.masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
    partner = torch.arange(2 * n).roll(n)
    return F.cross_entropy(logits, partner)


def balance(c):
    share = c.mean(0)
    return (share * share.log()).sum()


for epoch in range(4):
    for _ in range(12):
        x = centres[torch.randint(0, n_clusters, (batch_size,))]
        h_i, h_j = (encoder(x + 0.5 * torch.randn_like(x)) for _ in range(2))
        c_i, c_j = cluster_projector(h_i), cluster_projector(h_j)
        loss_instance = info_nce(instance_projector(h_i), instance_projector(h_j), 0.5)
        loss_cluster = info_nce(c_i.T, c_j.T, 1.0) + balance(c_i) + balance(c_j)
        loss = loss_instance + loss_cluster
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{epoch} instance {loss_instance.item():.3f} cluster {loss_cluster.item():.3f}")
