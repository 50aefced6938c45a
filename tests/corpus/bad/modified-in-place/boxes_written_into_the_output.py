# A detector decodes its boxes by writing into slices of its own output, after exp() has used them.
# source: none (a common mistake, written small)
# expect: modified-in-place
# raises: RuntimeError
import torch
from torch import nn

torch.manual_seed(2)
head = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 4))
optim = torch.optim.Adam(head.parameters(), lr=1e-3)
anchors = torch.rand(12, 4) + 0.5


def decode(raw):
    boxes = raw.exp()
    boxes[:, :2] = boxes[:, :2] + anchors[:, :2]  # <- cause
    return boxes


for features in torch.randn(3, 12, 10):
    loss = nn.functional.smooth_l1_loss(decode(head(features)), anchors)
    optim.zero_grad()
    loss.backward()  # <- modified-in-place
    optim.step()
