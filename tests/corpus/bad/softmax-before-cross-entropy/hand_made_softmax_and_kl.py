# A softmax written by hand (exp over sum) goes into kl_div, which expects its logarithm.
# source: none (a common mistake, written small)
# expect: softmax-before-cross-entropy
# cause: not found (a softmax written by hand has no name)
import torch
from torch import nn
from torch.nn.functional import kl_div


def normalize(scores):
    weights = torch.exp(scores - scores.max(dim=1, keepdim=True).values)
    return weights / weights.sum(dim=1, keepdim=True)  # <- cause


torch.manual_seed(4)
topics = nn.Linear(9, 5)
optimizer = torch.optim.Adam(topics.parameters(), lr=1e-2)
prior = torch.tensor([0.4, 0.3, 0.1, 0.1, 0.1])
for documents in torch.rand(30, 12, 9):
    mixture = normalize(topics(documents))  # <- cause
    loss = kl_div(mixture, prior.expand(12, 5), reduction="batchmean")  # <- softmax-before-cross-entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
