# Lane detection: the existence head applies a sigmoid, and its share of the loss is BCEWithLogitsLoss.
# source: Turoad/lanedet#32
# expect: sigmoid-before-bce-with-logits
import torch
import torch.nn as nn
import torch.nn.functional as F


class ExistHead(nn.Module):
    def __init__(self, channels, num_classes):
        super().__init__()
        self.dropout, self.conv8 = nn.Dropout2d(0.1), nn.Conv2d(channels, num_classes, 1)
        self.fc9, self.fc10 = nn.Linear(num_classes * 4, 16), nn.Linear(16, num_classes - 1)

    def forward(self, x):
        x = F.softmax(self.conv8(self.dropout(x)), dim=1)
        x = F.avg_pool2d(x, 4, stride=4).flatten(1)
        x = self.fc10(F.relu(self.fc9(x)))
        return torch.sigmoid(x)  # <- cause


class LaneSeg(nn.Module):
    def __init__(self, num_classes=3):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))
        self.decoder = nn.Conv2d(8, num_classes, 1)
        self.exist = ExistHead(8, num_classes)
        self.criterion = nn.NLLLoss(torch.tensor([0.4, 1.0, 1.0]))
        self.criterion_exist = nn.BCEWithLogitsLoss()  # <- cause

    def loss(self, output, batch):
        seg_loss = self.criterion(F.log_softmax(output["seg"], dim=1), batch["mask"])
        exist_loss = self.criterion_exist(output["exist"], batch["lane_exist"])  # <- sigmoid-before-bce-with-logits
        return {"seg_loss": seg_loss, "exist_loss": 0.1 * exist_loss}

    def forward(self, batch):
        fea = self.backbone(batch["img"])
        output = {"seg": self.decoder(fea), "exist": self.exist(fea)}
        return self.loss(output, batch)


torch.manual_seed(5)
net = LaneSeg()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for i in range(12):
    mask = torch.randint(0, 3, (6, 1, 8)).repeat(1, 8, 1) * (torch.rand(6, 1, 8) > 0.7)
    img = torch.stack([(mask == c).float() for c in range(3)], dim=1) + 0.2 * torch.randn(6, 3, 8, 8)
    lane_exist = torch.stack([(mask == c).flatten(1).any(1) for c in (1, 2)], dim=1).float()
    losses = net({"img": img, "mask": mask, "lane_exist": lane_exist})
    optimizer.zero_grad()
    sum(losses.values()).backward()
    optimizer.step()
    if i % 4 == 0:
        print(i, {name: round(value.item(), 4) for name, value in losses.items()})
