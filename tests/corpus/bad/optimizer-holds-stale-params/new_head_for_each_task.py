# Fine-tuning task by task: reset_head() puts a fresh classifier into the net, which the optimizer does not know.
# source: pytorch/pytorch#54765
# expect: optimizer-holds-stale-params
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class SmallResNet(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.fc = nn.Linear(8, num_classes)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(x + self.conv2(x))
        return self.fc(x.mean((2, 3)))


class Learner:
    def __init__(self, net, lr=0.05):
        self.net = net
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = optim.SGD(net.parameters(), lr=lr, momentum=0.9)  # <- optimizer-holds-stale-params

    def reset_head(self, num_classes):
        self.net.fc = nn.Linear(self.net.fc.in_features, num_classes)  # <- cause

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.net.train()
            for images, labels in loader:
                loss = self.criterion(self.net(images), labels)
                self.net.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(f"epoch {epoch} loss {loss.item():.4f}")


torch.manual_seed(0)
learner = Learner(SmallResNet(num_classes=10))
learner.reset_head(num_classes=3)
images = torch.rand(60, 3, 6, 6)
flowers = DataLoader(TensorDataset(images, images.mean((2, 3)).argmax(1)), batch_size=12, shuffle=True)
learner.fit(flowers, epochs=3)
