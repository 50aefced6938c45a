# A segmentation net is trained with a Dice score of thresholded masks, and a comparison has no gradient.
# source: none (a common mistake, written small)
# expect: graph-broken
# raises: RuntimeError
import torch
from torch import nn


class DiceLoss(nn.Module):
    def forward(self, logits, target):
        mask = (logits.sigmoid() > 0.5).float()  # <- cause
        overlap = (mask * target).sum((1, 2, 3))
        return 1 - (2 * overlap / (mask.sum((1, 2, 3)) + target.sum((1, 2, 3)) + 1e-6)).mean()


torch.manual_seed(1)
unet = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1))
optimizer = torch.optim.Adam(unet.parameters(), lr=1e-3)
criterion = DiceLoss()
for images in torch.rand(5, 4, 1, 8, 8):
    masks = (images > 0.7).float()
    optimizer.zero_grad()
    loss = criterion(unet(images), masks)
    loss.backward()  # <- graph-broken
    optimizer.step()
