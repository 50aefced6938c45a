# The first blocks are checkpointed the old way on inputs that require no gradient: their parameters never get one.
# source: https://discuss.pytorch.org/t/checkpoint-with-no-grad-requiring-inputs-problem/19117
# expect: graph-broken
# severity: hint (some cut off a part on purpose)
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stage1 = nn.Sequential(nn.Linear(6, width), nn.GELU(), nn.Linear(width, width))
        self.stage2 = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = checkpoint(self.stage1, x, use_reentrant=True)  # <- cause
        x = self.stage2(x)
        return self.head(x)


torch.manual_seed(10)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
images = torch.randn(64, 6)
labels = images[:, :3].argmax(1)
for epoch in range(3):
    for x, y in zip(images.split(16), labels.split(16), strict=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # <- graph-broken
        optimizer.step()
    print(epoch, loss.item())
