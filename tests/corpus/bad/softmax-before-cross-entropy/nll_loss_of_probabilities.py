# A digit classifier that returns F.softmax and trains with F.nll_loss, which expects the logarithms of these.
# source: https://discuss.pytorch.org/t/nll-loss-gives-negative-values/66681
# expect: softmax-before-cross-entropy
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3)
        self.fc1 = nn.Linear(6 * 9, 24)
        self.fc2 = nn.Linear(24, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return F.softmax(self.fc2(x), dim=1)  # <- cause


def train(model, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)  # <- softmax-before-cross-entropy, cause
        loss.backward()
        optimizer.step()
        if batch_idx % 4 == 0:
            print(f"Train Epoch: {epoch} [{batch_idx * len(data)}]\tLoss: {loss.item():.6f}")


torch.manual_seed(1)
digits = torch.randint(0, 4, (96,))
images = 0.3 * torch.randn(96, 1, 8, 8)
images[torch.arange(96), 0, 2 * digits] += 1
model = Net()
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
for epoch in range(1, 3):
    train(model, list(zip(images.split(12), digits.split(12), strict=True)), optimizer, epoch)
