# MoCo's linear classification protocol: the whole training runs in eval mode, since not even running statistics may
# change; the backbone is frozen by name, and a check at the end proves that it did not move.
# source: facebookresearch/moco main_lincls.py
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(50)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(9, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Dropout(0.3))
        self.fc = nn.Linear(40, 3)

    def forward(self, x):
        return self.fc(self.body(x))


def train(train_loader, model, criterion, optimizer, epoch):
    model.eval()
    for images, target in train_loader:
        output = model(images)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"Epoch {epoch} loss {loss.item():.4f}")


def validate(val_loader, model):
    model.eval()
    correct = 0
    with torch.no_grad():
        for images, target in val_loader:
            correct += (model(images).argmax(1) == target).sum().item()
    print(f" * Acc@1 {correct / len(val_loader.dataset):.3f}")


model = Backbone()
pretrained = {k: v.clone() for k, v in model.state_dict().items()}
for name, param in model.named_parameters():
    if name not in ["fc.weight", "fc.bias"]:
        param.requires_grad = False
model.fc.weight.data.normal_(mean=0.0, std=0.01)
model.fc.bias.data.zero_()
parameters = list(filter(lambda p: p.requires_grad, model.parameters()))
assert len(parameters) == 2
optimizer = torch.optim.SGD(parameters, 0.1, momentum=0.9)
x = torch.randn(160, 9)
dataset = TensorDataset(x, x[:, :3].argmax(1))
for epoch in range(4):
    for group in optimizer.param_groups:
        group["lr"] = 0.1 * (0.1 if epoch >= 3 else 1.0)
    train(DataLoader(dataset, 20, shuffle=True), model, nn.CrossEntropyLoss(), optimizer, epoch)
    validate(DataLoader(dataset, 80), model)
assert all((model.state_dict()[k] == v).all() for k, v in pretrained.items() if not k.startswith("fc."))
