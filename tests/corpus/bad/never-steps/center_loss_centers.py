# Center loss has an optimizer for its centers, which is cleared and never stepped; a scheduler is switched off.
# source: KaiyangZhou/pytorch-center-loss main.py, with the mistake put in
# expect: never-steps
import argparse

import torch
from torch import nn


class CenterLoss(nn.Module):
    def __init__(self, num_classes=4, feat_dim=2):
        super().__init__()
        self.num_classes = num_classes
        self.centers = nn.Parameter(torch.randn(num_classes, feat_dim))

    def forward(self, x, labels):
        distmat = torch.cdist(x, self.centers).square()
        mask = labels.unsqueeze(1).eq(torch.arange(self.num_classes))
        return (distmat * mask.float()).clamp(min=1e-12, max=1e12).sum() / len(x)


class ConvNet(nn.Module):
    def __init__(self, num_classes=4):
        super().__init__()
        self.body, self.fc = nn.Sequential(nn.Linear(8, 32), nn.PReLU(), nn.Linear(32, 2)), nn.Linear(2, num_classes)

    def forward(self, x):
        x = self.body(x)
        return x, self.fc(x)


def train(model, criterion_xent, criterion_cent, optimizer_model, optimizer_centloss, batches):
    model.train()
    for data, labels in batches:
        features, outputs = model(data)
        loss_xent = criterion_xent(outputs, labels)
        loss_cent = criterion_cent(features, labels) * args.weight_cent
        loss = loss_xent + loss_cent
        optimizer_model.zero_grad()
        optimizer_centloss.zero_grad()
        loss.backward()  # <- never-steps, cause
        optimizer_model.step()
    return loss.item()


parser = argparse.ArgumentParser()
parser.add_argument("--weight-cent", type=float, default=0.1)
parser.add_argument("--stepsize", type=int, default=0)
args = parser.parse_args([])
torch.manual_seed(1)
model, criterion_cent = ConvNet(), CenterLoss()
optimizer_model = torch.optim.SGD(model.parameters(), lr=0.01, weight_decay=5e-4, momentum=0.9)
optimizer_centloss = torch.optim.SGD(criterion_cent.parameters(), lr=0.5)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer_model, step_size=max(1, args.stepsize), gamma=0.5)
x = torch.randn(64, 8)
y = x[:, :4].argmax(1)
for epoch in range(4):
    batches = list(zip(x.split(16), y.split(16), strict=True))
    loss = train(model, nn.CrossEntropyLoss(), criterion_cent, optimizer_model, optimizer_centloss, batches)
    if args.stepsize > 0:
        scheduler.step()
    print(epoch, loss)
