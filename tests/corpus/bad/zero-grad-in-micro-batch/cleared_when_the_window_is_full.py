# Functions and a closure: clearing hangs on the same test as the step, but stands above the backward of the last chunk.
# source: none (a common mistake, written small)
# expect: zero-grad-in-micro-batch
from itertools import cycle

import torch
import torch.nn.functional as F
from torch import nn


def make_updater(net, optimizer, chunks):
    def update(images, labels):
        for number, (img, lab) in enumerate(zip(images.chunk(chunks), labels.chunk(chunks), strict=True), 1):
            last = number == chunks
            if last:  # <- cause
                for group in optimizer.param_groups:  # <- cause
                    for p in group["params"]:  # <- cause
                        p.grad = None  # <- zero-grad-in-micro-batch, cause
            loss = F.cross_entropy(net(img), lab, reduction="sum") / len(images)
            loss.backward()
            if last:
                optimizer.step()  # <- cause

    return update


torch.manual_seed(4)
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 3))
update = make_updater(net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), chunks=3)
images = torch.randn(4, 24, 1, 6, 6)
for index in cycle(range(4)):
    update(images[index], (images[index].mean((1, 2, 3)) * 10).long().clamp(0, 2))
    if index == 3:
        break
