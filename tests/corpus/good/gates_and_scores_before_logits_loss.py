# Sigmoid everywhere except before the loss: gates inside the network, a squeeze-and-excitation scale on the last
# features, and a dice score from probabilities; BCEWithLogitsLoss gets the last convolution's raw output.
# source: milesial/Pytorch-UNet train.py (BCEWithLogitsLoss on masks_pred, dice on its sigmoid)
import torch
from torch import nn


class Excite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(channels, 4), nn.ReLU(), nn.Linear(4, channels), nn.Sigmoid())

    def forward(self, x):
        return x * self.fc(x.mean((2, 3)))[:, :, None, None]


torch.manual_seed(217)
net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.GLU(1), Excite(8), nn.Conv2d(8, 16, 3, padding=1), nn.GLU(1), nn.Conv2d(8, 1, 1)
)
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0))
optimizer = torch.optim.RMSprop(net.parameters(), lr=3e-3)
images = torch.rand(40, 1, 10, 10)
masks = (nn.functional.avg_pool2d(images, 3, 1, 1) > 0.5).float()


def dice(pred, target):
    return 1 - (2 * (pred * target).sum() + 1) / (pred.sum() + target.sum() + 1)


for epoch in range(6):
    for batch in torch.randperm(40).split(8):
        masks_pred = net(images[batch])
        loss = criterion(masks_pred, masks[batch]) + dice(torch.sigmoid(masks_pred), masks[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
