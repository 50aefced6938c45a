# Human activity recognition: forward() returns softmax outputs, and CrossEntropyLoss takes the softmax of them again.
# source: jindongwang/Deep-learning-activity-recognition#10
# expect: softmax-before-cross-entropy
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Sequential(nn.Conv2d(9, 12, (1, 5)), nn.ReLU(), nn.MaxPool2d((1, 2)))
        self.conv2 = nn.Sequential(nn.Conv2d(12, 16, (1, 5)), nn.ReLU(), nn.MaxPool2d((1, 2)))
        self.fc1 = nn.Linear(16 * 5, 32)
        self.fc2 = nn.Linear(32, 6)

    def forward(self, x):
        out = self.conv2(self.conv1(x))
        out = F.relu(self.fc1(out.flatten(1)))
        out = self.fc2(out)
        return F.softmax(out, dim=1)  # <- cause


def train(model, optimizer, train_loader, test_loader, n_epoch):
    criterion = nn.CrossEntropyLoss()
    for e in range(n_epoch):
        model.train()
        correct, total_loss = 0, 0.0
        for sample, target in train_loader:
            output = model(sample)
            loss = criterion(output, target)  # <- softmax-before-cross-entropy
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total_loss += loss.item()
            correct += (output.argmax(1) == target).sum().item()
        model.eval()
        with torch.no_grad():
            test = sum((model(sample).argmax(1) == target).sum().item() for sample, target in test_loader)
        print(f"Epoch: [{e}/{n_epoch}], loss {total_loss:.4f}, train {correct}, test {test}")


torch.manual_seed(10)
windows, activity = torch.randn(72, 9, 1, 32), torch.randint(0, 6, (72,))
windows[torch.arange(72), activity] += 1.5
train_loader = DataLoader(TensorDataset(windows[:60], activity[:60]), batch_size=12, shuffle=True)
test_loader = DataLoader(TensorDataset(windows[60:], activity[60:]), batch_size=12)
model = Network()
train(model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), train_loader, test_loader, 3)
