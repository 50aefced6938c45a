# Saliency with a depth branch: the depth target lacks the channel dimension, so each map is compared with every map.
# source: jiwei0921/CoNet#3
# expect: loss-broadcasts
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class RgbdScenes(Dataset):
    def __init__(self, n=24, size=8):
        self.depth = torch.rand(n, 1, 1).expand(n, size, size) * torch.linspace(0, 1, size)
        self.image = self.depth.unsqueeze(1).repeat(1, 3, 1, 1) + 0.1 * torch.randn(n, 3, size, size)
        self.sal = (self.depth > 0.4).long()

    def __len__(self):
        return len(self.image)

    def __getitem__(self, index):
        return self.image[index], self.sal[index], self.depth[index]  # <- cause


class CoNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.sal, self.depth = nn.Conv2d(8, 2, 1), nn.Conv2d(8, 1, 1)

    def forward(self, x):
        high = self.backbone(x)
        return self.sal(high), torch.sigmoid(self.depth(high))  # <- cause


class Trainer:
    def __init__(self, model, optimizer, train_loader, max_epoch):
        self.model, self.optim = model, optimizer
        self.train_loader, self.max_epoch = train_loader, max_epoch

    def train(self):
        for epoch in range(self.max_epoch):
            for image, sal, depth in self.train_loader:
                self.optim.zero_grad()
                pred_sal, pred_depth = self.model(image)
                loss_sal = F.cross_entropy(pred_sal, sal)
                loss_depth = F.smooth_l1_loss(pred_depth, depth)  # <- loss-broadcasts, cause
                loss_all = loss_sal + loss_depth
                loss_all.backward()
                self.optim.step()
            print(f"epoch {epoch} loss {loss_all.item():.4f} depth {loss_depth.item():.4f}")


torch.manual_seed(9)
model = CoNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
Trainer(model, optimizer, DataLoader(RgbdScenes(), batch_size=6, shuffle=True), 3).train()
