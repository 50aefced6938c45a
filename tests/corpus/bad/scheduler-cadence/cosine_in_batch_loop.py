# A medical segmentation loop: CosineAnnealingLR counts T_max in epochs, but it was moved into the loop over batches.
# source: ivadomed/ivadomed#55
# expect: scheduler-cadence
import torch
from torch import nn, optim


def dice_loss(prediction, target, eps=1.0):
    overlap = (prediction * target).sum()
    return -(2.0 * overlap + eps) / (prediction.sum() + target.sum() + eps)


torch.manual_seed(7)
context = {"num_epochs": 10, "batch_size": 5, "initial_lr": 0.01}
volumes = torch.randn(60, 1, 10, 10)
masks = (nn.functional.avg_pool2d(volumes, 3, stride=1, padding=1) > 0.2).float()

model = nn.Sequential(
    nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 1, 3, padding=1), nn.Sigmoid()
)
optimizer = optim.Adam(model.parameters(), lr=context["initial_lr"])
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, context["num_epochs"])  # <- cause

for epoch in range(1, context["num_epochs"] + 1):
    model.train()
    train_loss_total, num_steps = 0.0, 0
    for idx in torch.randperm(60).split(context["batch_size"]):
        preds = model(volumes[idx])
        loss = dice_loss(preds, masks[idx])
        train_loss_total += loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()  # <- scheduler-cadence, cause
        num_steps += 1
    print(f"Epoch {epoch} training loss: {train_loss_total / num_steps:.4f}")
