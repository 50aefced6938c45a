# A small CNN on toy images that clears the gradients once at the start of each epoch instead of before every batch.
# source: heartcored98/Standalone-DeepLearning#11
# expect: missing-zero-grad
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.fc = nn.Linear(8 * 4, 5)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv(x)))
        return self.fc(x.flatten(1))


def train(net, loader, optimizer, criterion):
    net.train()
    optimizer.zero_grad()  # <- cause
    correct, total, train_loss = 0, 0, 0.0
    for inputs, labels in loader:
        outputs = net(inputs)  # <- cause
        loss = criterion(outputs, labels)
        loss.backward()  # <- cause
        optimizer.step()  # <- missing-zero-grad, cause

        train_loss += loss.item()
        correct += (outputs.argmax(1) == labels).sum().item()
        total += labels.size(0)
    return train_loss / len(loader), 100 * correct / total


images = torch.randn(96, 3, 8, 8)
labels = (images.mean(dim=(1, 2, 3)) * 20).long().clamp(-2, 2) + 2
loader = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True)
net = CNN()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.02)
for epoch in range(4):
    loss, acc = train(net, loader, optimizer, criterion)
    print(f"epoch {epoch}: loss {loss:.3f}, acc {acc:.1f}")
