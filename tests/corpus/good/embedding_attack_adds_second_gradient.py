# FGM on an embedding: after the clean backward the embedding is moved along its gradient, a second backward adds to the
# first on purpose, the embedding is put back, and one step applies both.
# source: aNLPer/modelZoo AdversarialTraining/FGM.py, arxiv.org/abs/1605.07725
import torch
from torch import nn


class FGM:
    def __init__(self, weight, epsilon=0.2):
        self.weight, self.epsilon = weight, epsilon

    @torch.no_grad()
    def attack(self):
        self.backup = self.weight.clone()
        norm = self.weight.grad.norm()
        if norm > 0:
            self.weight.add_(self.weight.grad, alpha=self.epsilon / norm.item())

    @torch.no_grad()
    def restore(self):
        self.weight.copy_(self.backup)


torch.manual_seed(227)
model = nn.Sequential(nn.EmbeddingBag(40, 16), nn.ReLU(), nn.Linear(16, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
fgm = FGM(model[0].weight)
texts = torch.randint(0, 40, (240, 6))
topics = texts.gt(24).sum(1).clamp(1, 3) - 1

for epoch in range(6):
    for rows in torch.randperm(240).split(24):
        loss = criterion(model(texts[rows]), topics[rows])
        loss.backward()
        fgm.attack()
        loss_adv = criterion(model(texts[rows]), topics[rows])
        loss_adv.backward()
        fgm.restore()
        optimizer.step()
        model.zero_grad()
    print(epoch, f"clean {loss.item():.4f} attacked {loss_adv.item():.4f}")
