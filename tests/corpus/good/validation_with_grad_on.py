# Validation in eval mode, but with autograd on: the graphs are wasted, yet nothing is kept and nothing is wrong. (The
# script's volatile=True has had no effect since PyTorch 0.4.)
# source: hunkim/PyTorchZeroToAll 09_2_softmax_mnist.py
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(90)
images = torch.rand(200, 1, 4, 4)
digits = images.flatten(1)[:, :5].argmax(1)
train_loader = DataLoader(TensorDataset(images[:160], digits[:160]), batch_size=16, shuffle=True)
test_loader = DataLoader(TensorDataset(images[160:], digits[160:]), batch_size=16)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = nn.Linear(16, 32), nn.Linear(32, 5)

    def forward(self, x):
        x = F.dropout(F.relu(self.l1(x.view(-1, 16))), 0.1, self.training)
        return F.log_softmax(self.l2(x), dim=1)


model = Net()
optimizer = optim.SGD(model.parameters(), lr=0.3, momentum=0.5)


def train():
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()


def test():
    model.eval()
    test_loss, correct = 0, 0
    for data, target in test_loader:
        output = model(data)
        test_loss += F.nll_loss(output, target, reduction="sum").item()
        pred = output.data.max(1, keepdim=True)[1]
        correct += pred.eq(target.data.view_as(pred)).sum().item()
    print(f"Test set: average loss {test_loss / 40:.4f}, accuracy {correct}/40")


for _ in range(5):
    train()
    test()
