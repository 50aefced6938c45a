# A network of reversible coupling blocks trained in bfloat16, with backward kept under autocast.
# source: silvandeleemput/memcnn#57
# expect: backward-inside-autocast
import torch
from torch import nn


class AdditiveCoupling(nn.Module):
    def __init__(self, channels):
        super().__init__()
        half = channels // 2
        self.fm = nn.Sequential(nn.Conv2d(half, half, 3, padding=1), nn.ReLU())
        self.gm = nn.Sequential(nn.Conv2d(half, half, 3, padding=1), nn.ReLU())

    def forward(self, x):
        x1, x2 = x.chunk(2, dim=1)
        y1 = x1 + self.fm(x2)
        return torch.cat([y1, x2 + self.gm(y1)], dim=1)


class Experiment:
    def __init__(self):
        self.net = nn.Sequential(AdditiveCoupling(4), AdditiveCoupling(4), nn.Flatten(), nn.Linear(4 * 36, 3))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def train_iter(self, images, labels):
        self.opt.zero_grad()
        with torch.amp.autocast("cpu", dtype=torch.bfloat16):
            logits = self.net(images)
            loss = nn.functional.cross_entropy(logits, labels)
            loss.backward()  # <- backward-inside-autocast, cause
        self.opt.step()
        return loss.item()


torch.manual_seed(1)
experiment = Experiment()
images = torch.randn(48, 4, 6, 6)
labels = images.mean((2, 3))[:, :3].argmax(1)
for epoch in range(2):
    losses = [experiment.train_iter(images[k : k + 8], labels[k : k + 8]) for k in range(0, 48, 8)]
    print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")
