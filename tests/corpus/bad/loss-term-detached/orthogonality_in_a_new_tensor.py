# The penalties of two heads are collected in torch.tensor([...]), which copies their values and none of their graphs.
# source: none (a common mistake, written small)
# expect: loss-term-detached
import torch
from torch import nn
from torch.utils.data import DataLoader


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 12), nn.ELU())
        self.heads = nn.ModuleList([nn.Linear(12, 3), nn.Linear(12, 3)])

    def forward(self, x):
        h = self.body(x)
        return sum(head(h) for head in self.heads)


def orthogonality(layer):
    gram = layer.weight @ layer.weight.T
    return (gram - torch.eye(len(gram))).pow(2).sum()


torch.manual_seed(6)
model = TwoHeads()
optim = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for x in DataLoader(torch.randn(240, 6), batch_size=8, shuffle=True):
    task = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    reg = torch.tensor([orthogonality(head) for head in model.heads]).mean()  # <- cause
    loss = task + 0.1 * reg
    optim.zero_grad()
    loss.backward()  # <- loss-term-detached
    optim.step()
