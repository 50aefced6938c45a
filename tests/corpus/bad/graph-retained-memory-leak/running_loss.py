# A running loss for the log adds up loss tensors, each with its graph, over the whole training.
# source: BatsResearch/labelmodels#4
# expect: graph-retained-memory-leak
import torch
from torch import nn


class LabelModel(nn.Module):
    def __init__(self, num_classes=3, num_lfs=6):
        super().__init__()
        self.class_prior = nn.Parameter(torch.zeros(num_classes))
        self.accuracy = nn.Parameter(torch.full((num_classes, num_lfs), 0.5))

    def forward(self, votes):
        log_prior = torch.log_softmax(self.class_prior, 0)
        logp = (
            votes @ nn.functional.logsigmoid(self.accuracy).T + (1 - votes) @ nn.functional.logsigmoid(-self.accuracy).T
        )
        return torch.logsumexp(log_prior + logp, dim=1)

    def fit(self, batches, epochs=4, lr=0.05):
        optimizer = torch.optim.Adam(self.parameters(), lr=lr)
        running_loss = 0.0
        seen = 0
        for epoch in range(epochs):
            for votes in batches:
                optimizer.zero_grad()
                loss = -self(votes).mean()
                loss.backward()
                optimizer.step()
                running_loss += loss  # <- graph-retained-memory-leak, cause
                seen += 1
            print(f"Epoch {epoch} mean loss so far {running_loss.item() / seen:.4f}")


torch.manual_seed(0)
LabelModel().fit(torch.rand(60, 6).round().split(10))
