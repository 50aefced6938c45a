# One function trains and validates; it says model.train() for the training, rightly, and never model.eval().
# source: milesial/Pytorch-UNet train.py, with the evaluation written into the loop and its net.eval() left out
# expect: validation-in-train-mode
import torch
import torch.nn.functional as F
from torch import nn, optim


def train_model(model, train_set, val_set, epochs=4, learning_rate=1e-2):
    optimizer = optim.RMSprop(model.parameters(), lr=learning_rate, foreach=True)
    for epoch in range(1, epochs + 1):
        model.train()
        epoch_loss = 0
        for images, true_masks in train_set:
            loss = F.binary_cross_entropy_with_logits(model(images), true_masks)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
        dice_score = 0  # <- cause
        with torch.no_grad():  # <- cause
            for images, true_masks in val_set:  # <- cause
                pred = (model(images) > 0).float()  # <- validation-in-train-mode, cause
                dice_score += 2 * (pred * true_masks).sum().item() / (pred.sum() + true_masks.sum()).item()
        print(f"epoch {epoch} loss {epoch_loss / len(train_set):.4f} dice {dice_score / len(val_set):.4f}")


torch.manual_seed(7)
images = torch.rand(48, 1, 8, 8)
masks = (F.avg_pool2d(images, 3, stride=1, padding=1) > 0.5).float()
pairs = list(zip(images.split(6), masks.split(6), strict=True))
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
train_model(model, pairs[:5], pairs[5:])
