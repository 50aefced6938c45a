# An image classifier lowers its rate by making a new SGD in train(epoch); the momentum so far is thrown away.
# source: bmsookim/wide-resnet.pytorch#8
# expect: optimizer-remade
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class BasicBlock(nn.Module):
    def __init__(self, planes):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(planes), nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2, self.conv2 = nn.BatchNorm2d(planes), nn.Conv2d(planes, planes, 3, padding=1, bias=False)

    def forward(self, x):
        out = self.conv1(torch.relu(self.bn1(x)))
        return x + self.conv2(torch.relu(self.bn2(out)))


def learning_rate(init, epoch):
    return init * 0.2 ** (epoch // 3)


def train(epoch):
    net.train()
    train_loss = correct = total = 0
    optimizer = optim.SGD(net.parameters(), lr=learning_rate(0.05, epoch), momentum=0.9)  # <- optimizer-remade, cause
    for inputs, targets in trainloader:
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
        correct += outputs.argmax(1).eq(targets).sum().item()
        total += targets.size(0)
    print(f"| Epoch {epoch} Loss: {train_loss / len(trainloader):.4f} Acc: {100 * correct / total:.1f}%")


torch.manual_seed(0)
images = torch.randn(48, 3, 6, 6)
labels = images.mean((2, 3)).argmax(1)
trainloader = DataLoader(TensorDataset(images, labels), batch_size=12, shuffle=True)
net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1, bias=False), BasicBlock(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)
)
criterion = nn.CrossEntropyLoss()
for epoch in range(1, 7):
    train(epoch)
