# A forward hook keeps the last features only, with their graph, because a term of the loss is made of them.
# source: none (a common pattern, written small)
import torch
from torch import nn


class WithFeatures:
    def __init__(self, model, layer):
        self.model, self.features = model, None
        layer.register_forward_hook(self.keep)

    def keep(self, module, args, output):
        self.features = output

    def loss(self, x, y):
        logits = self.model(x)
        return nn.functional.cross_entropy(logits, y) + 1e-3 * self.features.square().mean()


torch.manual_seed(15)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
both = WithFeatures(model, model[1])
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x in torch.randn(120, 16, 6):
    optimizer.zero_grad()
    both.loss(x, x[:, :3].argmax(1)).backward()
    optimizer.step()
