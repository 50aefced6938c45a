# Cosine annealing on a small segmentation net, stepped at the top of the batch loop, before the update.
# source: Abe404/segmentation_of_roots_in_soil_with_unet#4
# expect: scheduler-before-optimizer
import torch
import torch.optim as optim
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

torch.manual_seed(2)
cnn = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv2d(8, 2, 1))
photos = torch.rand(24, 3, 8, 8)
annotations = (photos.mean(1) > 0.5).long()
optimizer = optim.SGD(cnn.parameters(), lr=0.05, momentum=0.99, nesterov=True)
n_epochs, batch_size = 4, 6
scheduler = CosineAnnealingLR(optimizer, T_max=n_epochs * 24 // batch_size)


def train_epoch():
    epoch_loss = 0
    for pick in torch.randperm(24).split(batch_size):
        scheduler.step()  # <- scheduler-before-optimizer, cause
        optimizer.zero_grad()
        outputs = cnn(photos[pick])
        loss = nn.functional.cross_entropy(outputs, annotations[pick])
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    return epoch_loss / 4


for epoch in range(n_epochs):
    print("epoch", epoch, "loss", round(train_epoch(), 4), "lr", round(scheduler.get_last_lr()[0], 5))
