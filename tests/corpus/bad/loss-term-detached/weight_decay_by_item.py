# A hand-made weight decay of the last layer is turned into a number before it is added, in a step function.
# source: none (a common mistake, written small)
# expect: loss-term-detached
import torch
from torch import nn

torch.manual_seed(1)
encoder = nn.GRU(4, 8, batch_first=True)
classifier = nn.Linear(8, 2)
params = [*encoder.parameters(), *classifier.parameters()]
optimizer = torch.optim.Adagrad(params, lr=0.05)


def train_step(sequences, labels, decay=0.01):
    _, hidden = encoder(sequences)
    nll = nn.functional.cross_entropy(classifier(hidden[-1]), labels)
    reg = classifier.weight.pow(2).sum().item()  # <- cause
    loss = nll + decay * reg
    optimizer.zero_grad()
    loss.backward()  # <- loss-term-detached
    optimizer.step()
    return loss.item()


for _ in range(25):
    sequences = torch.randn(8, 5, 4)
    last = train_step(sequences, (sequences.sum((1, 2)) > 0).long())
print(last)
