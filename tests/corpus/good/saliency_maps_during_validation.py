# Validation in eval mode with autograd on, since every validation batch also gets a saliency map: the gradient of the
# winning score with respect to the image. Each graph is used, and no training step sees these gradients.
# source: pytorch/captum captum/attr/_core/saliency.py
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(222)
images = torch.rand(120, 1, 8, 8)
labels = (images[:, 0, :4].mean((1, 2)) > images[:, 0, 4:].mean((1, 2))).long()
train_loader = DataLoader(TensorDataset(images[:96], labels[:96]), batch_size=16, shuffle=True)
valid_loader = DataLoader(TensorDataset(images[96:], labels[96:]), batch_size=12)
model = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Dropout2d(0.1), nn.Flatten(), nn.Linear(216, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def validate():
    model.eval()
    correct, maps = 0, []
    for image, label in valid_loader:
        image.requires_grad_()
        scores = model(image)
        correct += (scores.argmax(1) == label).sum().item()
        (gradient,) = torch.autograd.grad(scores.amax(1).sum(), image)
        maps.append(gradient.abs().amax(1))
    model.train()
    return correct / 24, torch.cat(maps)


for epoch in range(6):
    for image, label in train_loader:
        loss = nn.functional.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    accuracy, saliency = validate()
    print(f"{epoch} loss {loss.item():.3f} accuracy {accuracy:.2f} largest slope {saliency.max().item():.3f}")
