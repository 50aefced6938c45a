# Two optimizers on one loss; the gradient of the second one's parameters is divided by the loss's weight before its
# step, so that the weight does not change how fast the centres learn.
# source: KaiyangZhou/pytorch-center-loss main.py
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)


class CenterLoss(nn.Module):
    def __init__(self, num_classes, feat_dim):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(num_classes, feat_dim))

    def forward(self, x, labels):
        return ((x - self.centers[labels]) ** 2).sum(1).clamp(min=1e-12, max=1e12).mean()


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 20), nn.PReLU(), nn.Linear(20, 2))
        self.fc = nn.Linear(2, 3)

    def forward(self, x):
        features = self.features(x)
        return features, self.fc(features)


labels = torch.arange(192) % 3
loader = DataLoader(TensorDataset(torch.randn(192, 6) + labels.view(-1, 1), labels), batch_size=32, shuffle=True)
model = ConvNet()
criterion_xent, criterion_cent = nn.CrossEntropyLoss(), CenterLoss(3, 2)
optimizer_model = torch.optim.SGD(model.parameters(), lr=0.05, weight_decay=5e-4, momentum=0.9)
optimizer_centloss = torch.optim.SGD(criterion_cent.parameters(), lr=0.5)
weight_cent = 0.1

for epoch in range(5):
    model.train()
    for data, target in loader:
        features, outputs = model(data)
        loss_xent = criterion_xent(outputs, target)
        loss_cent = criterion_cent(features, target) * weight_cent
        loss = loss_xent + loss_cent
        optimizer_model.zero_grad()
        optimizer_centloss.zero_grad()
        loss.backward()
        optimizer_model.step()
        for param in criterion_cent.parameters():
            param.grad.data *= 1.0 / weight_cent
        optimizer_centloss.step()
    print(epoch, round(loss.item(), 3))
