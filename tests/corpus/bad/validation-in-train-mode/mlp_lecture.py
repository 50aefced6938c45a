# A lecture notebook with dropout: the validation loss of each epoch is computed with dropout still on.
# source: udacity/deep-learning-v2-pytorch#3
# expect: validation-in-train-mode
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(49, 64), nn.Linear(64, 64), nn.Linear(64, 10)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        x = x.view(-1, 7 * 7)
        x = self.dropout(F.relu(self.fc1(x)))
        x = self.dropout(F.relu(self.fc2(x)))
        return self.fc3(x)


digits = torch.rand(120, 7, 7)
labels = digits.flatten(1)[:, :10].argmax(1)
train_loader = [(digits[i : i + 20], labels[i : i + 20]) for i in range(0, 80, 20)]
valid_loader = [(digits[i : i + 20], labels[i : i + 20]) for i in range(80, 120, 20)]
model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
valid_loss_min = float("inf")

for epoch in range(5):
    train_loss = valid_loss = 0.0
    for data, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * data.size(0)
    with torch.no_grad():  # <- cause
        for data, target in valid_loader:  # <- cause
            output = model(data)  # <- validation-in-train-mode, cause
            loss = criterion(output, target)
            valid_loss += loss.item() * data.size(0)
    print(f"Epoch: {epoch + 1} \tTraining Loss: {train_loss / 80:.6f} \tValidation Loss: {valid_loss / 40:.6f}")
    if valid_loss <= valid_loss_min:
        best, valid_loss_min = {k: v.clone() for k, v in model.state_dict().items()}, valid_loss
