# Active learning with a loss-prediction module: a helper collects the two losses in a new tensor before they are added.
# source: kozistr/pytorch_optimizer#64
# expect: graph-broken
# raises: RuntimeError
import torch
import torch.nn as nn
import torch.nn.functional as F


class LossNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.gap, self.linear = nn.AdaptiveAvgPool2d(1), nn.Linear(width, 1)

    def forward(self, features):
        return self.linear(self.gap(features).flatten(1)).squeeze(1)


class Backbone(nn.Module):
    def __init__(self, width=16, classes=3):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, width, 3, padding=1), nn.Linear(width, classes)

    def forward(self, x):
        features = torch.relu(self.conv(x))
        return self.fc(features.mean((2, 3))), features


def loss_pred_loss(predicted, target, margin=1.0):
    first, second = predicted.chunk(2)
    sign = torch.sign(target.detach().chunk(2)[0] - target.detach().chunk(2)[1])
    return F.margin_ranking_loss(first, second, sign, margin=margin)


def combine(losses, weights):
    losses = torch.tensor(losses)  # <- cause
    return (losses * torch.tensor(weights)).sum()


def train_epoch(models, criterion, optimizers, batches):
    for inputs, labels in batches:
        scores, features = models["backbone"](inputs)
        target_loss = criterion(scores, labels)
        module_loss = loss_pred_loss(models["module"](features.detach()), target_loss)
        loss = combine([target_loss.mean(), module_loss], [1.0, 0.5])  # <- cause
        for optimizer in optimizers.values():
            optimizer.zero_grad()
        loss.backward()  # <- graph-broken
        for optimizer in optimizers.values():
            optimizer.step()
        print(f"loss {loss.item():.4f}")


torch.manual_seed(18)
models = {"backbone": Backbone(), "module": LossNet()}
optimizers = {name: torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9) for name, net in models.items()}
images = torch.rand(48, 3, 8, 8)
batches = list(zip(images.split(8), images.mean((2, 3)).argmax(1).split(8), strict=True))
train_epoch(models, nn.CrossEntropyLoss(reduction="none"), optimizers, batches)
