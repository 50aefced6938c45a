# Segmentation with pixels that have no label, in chunks of one batch: each chunk's mean has its own number of pixels.
# source: none (a common mistake, written small)
# expect: loss-not-divided
# severity: hint (each image may be meant to count the same)
import torch
import torch.nn.functional as F
from torch import nn


def train_batch(net, optimizer, images, labels, chunks):
    optimizer.zero_grad()
    for image, label in zip(images.chunk(chunks), labels.chunk(chunks), strict=True):
        loss = F.cross_entropy(net(image), label, ignore_index=255)  # <- cause
        (loss / chunks).backward()  # <- loss-not-divided, cause
    optimizer.step()


torch.manual_seed(6)
net = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for images in torch.rand(12, 6, 3, 6, 6):
    labels = (images.mean(1) * 4).long()
    for label, share in zip(labels, torch.rand(6), strict=True):
        label[torch.rand(6, 6) > share + 0.05] = 255
    train_batch(net, optimizer, images, labels, chunks=3)
