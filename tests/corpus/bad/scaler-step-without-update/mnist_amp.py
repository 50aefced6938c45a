# An MNIST-like float16 script that scales, backpropagates and steps, but never updates the scaler.
# source: Azure/MS-AMP#45
# expect: scaler-step-without-update
# raises: RuntimeError
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR

torch.manual_seed(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.dropout = nn.Dropout(0.25)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = self.dropout(F.relu(self.fc1(x.flatten(1))))
        return F.log_softmax(self.fc2(x), dim=1)


def train(model, batches, optimizer, epoch, scaler):
    model.train()
    for batch_idx, (data, target) in enumerate(batches):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            output = model(data)
            loss = F.nll_loss(output.float(), target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # <- scaler-step-without-update, cause
        print(f"Train Epoch: {epoch} [{batch_idx}/{len(batches)}]\tLoss: {loss.item():.6f}")


data = torch.rand(10, 8, 1, 8, 8)
batches = [(x, x.flatten(1)[:, :10].argmax(1)) for x in data]
model = Net()
optimizer = optim.Adadelta(model.parameters(), lr=1.0)
scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
scaler = torch.amp.GradScaler("cpu")
for epoch in range(1, 3):
    train(model, batches, optimizer, epoch, scaler)
    scheduler.step()
