# Transfer learning with a fixed feature extractor: everything is frozen, the optimizer holds the new last layer only.
# source: pytorch/tutorials beginner_source/transfer_learning_tutorial.py
import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler

torch.manual_seed(46)


class TinyResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer1 = nn.Conv2d(8, 8, 3, padding=1)
        self.fc = nn.Linear(8, 1000)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = x + torch.relu(self.layer1(x))
        return self.fc(x.mean((2, 3)))


model_conv = TinyResNet()
for param in model_conv.parameters():
    param.requires_grad = False
model_conv.fc = nn.Linear(model_conv.fc.in_features, 2)

criterion = nn.CrossEntropyLoss()
optimizer_conv = optim.SGD(model_conv.fc.parameters(), lr=0.2, momentum=0.9)
exp_lr_scheduler = lr_scheduler.StepLR(optimizer_conv, step_size=4, gamma=0.1)
labels = torch.arange(64) % 2
images = torch.rand(64, 3, 6, 6) * (1 + labels.view(-1, 1, 1, 1))
data = {"train": range(0, 48, 8), "val": range(48, 64, 8)}

for epoch in range(6):
    for phase in ["train", "val"]:
        if phase == "train":
            model_conv.train()
        else:
            model_conv.eval()
        running_loss = 0.0
        for i in data[phase]:
            optimizer_conv.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model_conv(images[i : i + 8])
                loss = criterion(outputs, labels[i : i + 8])
                if phase == "train":
                    loss.backward()
                    optimizer_conv.step()
            running_loss += loss.item() * 8
        if phase == "train":
            exp_lr_scheduler.step()
        print(f"{epoch} {phase} loss: {running_loss / (8 * len(data[phase])):.4f}")
