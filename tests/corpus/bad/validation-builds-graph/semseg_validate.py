# Semantic segmentation: the validation after each epoch switches to eval(), but runs the net with gradients enabled.
# source: hszhao/semseg#60
# expect: validation-builds-graph
# severity: hint (it costs memory and time; the numbers are right)
import torch
from torch import nn

torch.manual_seed(1)


def train(train_loader, model, criterion, optimizer, epoch):
    model.train()
    for input, target in train_loader:
        loss = criterion(model(input), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"Epoch {epoch + 1}: train loss {loss.item():.4f}")


def validate(val_loader, model, criterion):  # <- cause
    loss_meter, intersection, union = 0.0, 0, 0
    model.eval()
    for input, target in val_loader:  # <- cause
        output = model(input)  # <- validation-builds-graph, cause
        loss = criterion(output, target)
        prediction = output.argmax(1)
        intersection += ((prediction == target) & (target == 1)).sum().item()
        union += ((prediction == 1) | (target == 1)).sum().item()
        loss_meter += loss.item()
    print(f"Val result: mIoU {intersection / max(union, 1):.4f}, loss {loss_meter / len(val_loader):.4f}")


images = torch.randn(56, 3, 8, 8)
labels = (images.sum(1) > 0).long()
batches = list(zip(images.split(8), labels.split(8), strict=True))
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 2, 1))
criterion = nn.CrossEntropyLoss(ignore_index=255)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for epoch in range(3):
    train(batches[:4], model, criterion, optimizer, epoch)
    validate(batches[4:], model, criterion)
