# A relation network that keeps its weights in an ordinary dict; only the output layer is registered and trained.
# source: pytorch/pytorch#632
# expect: params-missing-from-optimizer
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
torch.set_default_dtype(torch.float64)


class RelationNet(nn.Module):
    def __init__(self, n_rel=3, n_feat=5):
        super().__init__()
        self.waggrs = {}  # <- cause
        for rel in range(n_rel):
            self.waggrs[rel] = {  # <- cause
                "w": nn.Parameter(1.0 + torch.randn(1, n_feat) / 4),
                "b": nn.Parameter(torch.zeros(1, n_feat)),
            }
        self.out = nn.Linear(n_rel * n_feat, 1)

    def forward(self, x):
        parts = [F.softplus(x[:, r] * p["w"] + p["b"]) for r, p in self.waggrs.items()]
        return self.out(torch.cat(parts, dim=1))


def train(model, opt, x, y, iterations=25):
    for i in range(iterations):
        pick = torch.randperm(len(x))[:16]
        loss = F.mse_loss(model(x[pick]).squeeze(1), y[pick])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % 8 == 0:
            print(i, round(loss.item(), 5))


x = torch.randn(100, 3, 5)
y = x.sum((1, 2)) / 4
model = RelationNet()
opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)  # <- params-missing-from-optimizer
train(model, opt, x, y)
