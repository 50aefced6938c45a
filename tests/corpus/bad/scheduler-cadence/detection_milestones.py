# A detector's engine steps MultiStepLR, whose milestones are epochs, once per image batch.
# source: pytorch/vision#8629
# expect: scheduler-cadence
import argparse

import torch
import torch.nn.functional as F
from torch import nn


def train_one_epoch(model, optimizer, data_loader, lr_scheduler, epoch, print_freq=5):
    model.train()
    for i, (images, targets) in enumerate(data_loader):
        loss_dict = model(images, targets)
        losses = sum(loss_dict.values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        lr_scheduler.step()  # <- scheduler-cadence, cause
        if i % print_freq == 0:
            print(f"Epoch: [{epoch}] [{i}] lr: {optimizer.param_groups[0]['lr']:.6f} loss: {losses.item():.4f}")


class Detector(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.cls_score = nn.Linear(32, classes)
        self.bbox_pred = nn.Linear(32, 4)

    def forward(self, images, targets):
        features = self.backbone(images)
        return {
            "loss_classifier": F.cross_entropy(self.cls_score(features), targets["labels"]),
            "loss_box_reg": F.smooth_l1_loss(self.bbox_pred(features), targets["boxes"]),
        }


def main(args):
    torch.manual_seed(args.seed)
    images = torch.rand(60, 3, 12, 12)
    targets = [{"labels": torch.randint(0, 3, (6,)), "boxes": torch.rand(6, 4)} for _ in range(10)]
    data_loader = list(zip(images.split(6), targets, strict=True))
    model = Detector()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    lr_scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=args.lr_steps, gamma=0.1)
    for epoch in range(args.epochs):
        train_one_epoch(model, optimizer, data_loader, lr_scheduler, epoch)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--lr-steps", nargs="+", type=int, default=[4, 6, 7])
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
