# A classifier is built again with the width of a config file, after its optimizer; its constructor has helpers.
# source: weiaicunzai/pytorch-cifar100 models/resnet.py, with the mistake put in
# expect: optimizer-holds-stale-params
import torch
from torch import nn, optim


class ResNet(nn.Module):
    def __init__(self, width, num_block=2, num_classes=3):
        super().__init__()
        self.build(width, num_block, num_classes)

    def build(self, width, num_block, num_classes):
        self.conv1 = nn.Linear(6, width)
        self.blocks = nn.Sequential(*[self._make_block(width) for _ in range(num_block)])
        self.fc = nn.Linear(width, num_classes)

    def _make_block(self, width):
        return nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())

    def forward(self, x):
        return self.fc(self.blocks(torch.relu(self.conv1(x))))


torch.manual_seed(3)
config = {"width": 12}
net = ResNet(width=24)
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)  # <- optimizer-holds-stale-params
loss_function = nn.CrossEntropyLoss()
if config["width"] != 24:
    net = ResNet(config["width"])  # <- cause
images = torch.randn(60, 6)
labels = images[:, :3].argmax(1)
for epoch in range(4):
    net.train()
    for batch in torch.randperm(60).split(15):
        net.zero_grad()
        loss = loss_function(net(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
    print(f"Training Epoch: {epoch} Loss: {loss.item():.4f}")
