# Adversarial training with a one-step attack object: its backward() reaches the parameters of predict, too.
# source: BorealisAI/advertorch#113
# expect: attack-gradients-in-step
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class GradientSignAttack:
    def __init__(self, predict, loss_fn, eps=0.3, clip_min=0.0, clip_max=1.0):
        self.predict, self.loss_fn, self.eps = predict, loss_fn, eps
        self.clip_min, self.clip_max = clip_min, clip_max

    def perturb(self, x, y):
        xadv = x.detach().clone().requires_grad_()
        loss = self.loss_fn(self.predict(xadv), y)
        loss.backward()  # <- cause
        with torch.no_grad():
            return (xadv + self.eps * xadv.grad.sign()).clamp(self.clip_min, self.clip_max)


def train(epoch, model, adversary, train_loader, optimizer, loss_fn):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        if adversary is not None:
            data = torch.cat([data, adversary.perturb(data, target)])  # <- cause
            target = target.repeat(2)
        loss = loss_fn(model(data), target)
        loss.backward()  # <- cause
        optimizer.step()  # <- attack-gradients-in-step
        optimizer.zero_grad()  # <- cause
        if batch_idx % 3 == 0:
            print(f"Train Epoch: {epoch} [{batch_idx}/{len(train_loader)}]\tLoss: {loss.item():.6f}")


torch.manual_seed(5)
digits = torch.rand(60, 16)
labels = digits.view(60, 4, 4).sum(2).argmax(1)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
adversary = GradientSignAttack(model, loss_fn, eps=0.15)
loader = DataLoader(TensorDataset(digits, labels), batch_size=10, shuffle=True)
for epoch in range(1, 4):
    train(epoch, model, adversary, loader, optimizer, loss_fn)
