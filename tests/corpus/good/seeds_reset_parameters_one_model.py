# Several runs with different seeds reuse one model object: reset_parameters() gives it new weights in place, and each
# run makes its own optimizer over the same tensors.
# source: pyg-team/pytorch_geometric benchmark/citation/train_eval.py (model.reset_parameters() in every run)
import statistics

import torch
from torch import nn


class GCN(nn.Module):
    def __init__(self, n_in, n_hidden, n_classes):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(n_in, n_hidden), nn.Linear(n_hidden, n_classes)

    def reset_parameters(self):
        self.lin1.reset_parameters()
        self.lin2.reset_parameters()

    def forward(self, adj, x):
        x = nn.functional.dropout(torch.relu(adj @ self.lin1(x)), 0.3, self.training)
        return torch.log_softmax(adj @ self.lin2(x), dim=-1)


torch.manual_seed(210)
labels = torch.randint(0, 3, (60,))
edges = ((labels[:, None] == labels) & (torch.rand(60, 60) < 0.2)).float() + torch.eye(60)
adj = edges / edges.sum(1, keepdim=True)
x = torch.randn(60, 8) + nn.functional.one_hot(labels, 8)
train_mask = torch.arange(60) < 30
model, accuracies = GCN(8, 16, 3), []
for run in range(4):
    torch.manual_seed(run)
    model.reset_parameters()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)
    for epoch in range(25):
        model.train()
        optimizer.zero_grad()
        loss = nn.functional.nll_loss(model(adj, x)[train_mask], labels[train_mask])
        loss.backward()
        optimizer.step()
        if epoch % 12 == 0:
            print(f"run {run} epoch {epoch} loss {loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        accuracies.append((model(adj, x).argmax(1) == labels)[~train_mask].float().mean().item())
print(f"{statistics.mean(accuracies):.3f} +- {statistics.stdev(accuracies):.3f}")
