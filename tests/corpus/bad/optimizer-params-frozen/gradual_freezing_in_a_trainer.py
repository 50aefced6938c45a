# A trainer freezes a layer half-way; its gradients are zeros from then on, and weight decay and momentum go on.
# source: none (a common mistake, written small)
# expect: optimizer-params-frozen
# cause: not found (freezing, clearing and the optimizer's groups are all places to mend it)
import torch
from torch import nn


class FreezingTrainer:
    def __init__(self, layers):
        self.layers = layers
        self.optimizer = torch.optim.SGD(layers.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-2)

    def freeze(self, index):
        for parameter in self.layers[index].parameters():
            parameter.requires_grad = False  # <- cause

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.cross_entropy(self.layers(x), y)
        loss.backward()
        self.optimizer.step()  # <- optimizer-params-frozen


torch.manual_seed(4)
trainer = FreezingTrainer(nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 2)))
for number, x in enumerate(torch.randn(40, 16, 6)):
    if number == 20:
        trainer.freeze(0)
    trainer.step(x, (x[:, 0] > 0).long())
