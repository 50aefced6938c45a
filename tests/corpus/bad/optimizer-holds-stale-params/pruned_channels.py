# Pruning swaps layers for narrower ones, and fine-tuning goes on with the optimizer of the unpruned network.
# source: microsoft/nni#4521
# expect: optimizer-holds-stale-params
import torch
from torch import nn
from torch.optim import SGD
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3),
    nn.BatchNorm2d(12),
    nn.ReLU(),
    nn.Conv2d(12, 4, 3),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
)
optimizer = SGD(model.parameters(), lr=0.05, momentum=0.9)  # <- optimizer-holds-stale-params
criterion = nn.CrossEntropyLoss()
x = torch.randn(64, 1, 8, 8)
y = (x[:, 0, ::4, ::4].flatten(1)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=16)


def speedup(net, keep):
    conv, bn, nxt = net[0], net[1], net[3]
    net[0] = nn.Conv2d(1, len(keep), 3)  # <- cause
    net[1] = nn.BatchNorm2d(len(keep))  # <- cause
    net[3] = nn.Conv2d(len(keep), 4, 3)  # <- cause
    with torch.no_grad():
        net[0].weight.copy_(conv.weight[keep])
        net[0].bias.copy_(conv.bias[keep])
        net[1].weight.copy_(bn.weight[keep])
        net[3].weight.copy_(nxt.weight[:, keep])


def run_epoch():
    for inputs, labels in loader:
        loss = criterion(model(inputs), labels)
        model.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


print("dense", run_epoch())
importance = model[0].weight.detach().abs().sum((1, 2, 3))
speedup(model, importance.topk(6).indices)  # <- cause
for epoch in range(4):
    print("finetune", epoch, run_epoch())
