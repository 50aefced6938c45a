# A block inside of a classifier uses F.dropout2d with a rate and no mode; the classifier is scored in evaluation mode.
# source: none (a common mistake, written small)
# expect: validation-in-train-mode
# severity: hint (sampling with dropout may be wanted)
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Conv2d):
    def forward(self, x):
        h = super().forward(x).relu()
        if self.training:
            h = F.dropout(h, 0.1)
        return F.dropout2d(h, p=0.25)  # <- validation-in-train-mode, cause


def score(model, x, y):
    model.eval()
    with torch.inference_mode():
        return (model(x).argmax(1) == y).float().mean()


torch.manual_seed(1)
model = nn.Sequential(Block(1, 4, 3), nn.Flatten(), nn.Linear(4 * 16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
images = torch.randn(32, 1, 6, 6)
labels = (images.mean((1, 2, 3)) > 0).long()
for _epoch in range(4):
    model.train()
    for rows in torch.randperm(32).split(8):
        optimizer.zero_grad()
        F.cross_entropy(model(images[rows]), labels[rows]).backward()
        optimizer.step()
    print(score(model, images, labels))
