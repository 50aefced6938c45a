# Temporal action proposals: the loss is averaged over weighted positions, and a small batch has none of them.
# source: JJBOY/BMN-Boundary-Matching-Network#23
# expect: nan-loss
# raises: RuntimeError
# cause: not found (the loop ends before another pass can be recorded)
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class BMN(nn.Module):
    def __init__(self, feat=6, tscale=8):
        super().__init__()
        self.base = nn.Sequential(nn.Conv1d(feat, 12, 3, padding=1), nn.ReLU())
        self.confidence = nn.Sequential(nn.Conv1d(12, 2, 1), nn.Sigmoid())

    def forward(self, x):
        return self.confidence(self.base(x))


def pem_reg_loss_func(pred_score, gt_iou_map):
    u_hmask = (gt_iou_map > 0.7).float()
    u_mmask = ((gt_iou_map <= 0.7) & (gt_iou_map > 0.3)).float()
    ratio = u_hmask.sum() / u_mmask.sum().clamp(min=1)
    weights = u_hmask + u_mmask * (torch.rand_like(gt_iou_map) < ratio)
    return (F.mse_loss(pred_score, gt_iou_map, reduction="none") * weights).sum() / weights.sum()  # <- cause


def pem_cls_loss_func(pred_score, gt_iou_map):
    return F.binary_cross_entropy(pred_score, (gt_iou_map > 0.7).float())


def train_bmn(data_loader, model, optimizer, epoch):
    model.train()
    epoch_loss = 0.0
    for input_data, label_confidence in data_loader:
        conf = model(input_data)
        loss = pem_cls_loss_func(conf[:, 1], label_confidence) + 10 * pem_reg_loss_func(conf[:, 0], label_confidence)
        optimizer.zero_grad()
        loss.backward()  # <- nan-loss
        optimizer.step()
        epoch_loss += loss.item()
    print(f"BMN training loss(epoch {epoch}): {epoch_loss / len(data_loader):.3f}")


torch.manual_seed(4)
videos, iou = torch.randn(24, 6, 8), torch.rand(24, 8)
iou[20:] *= 0.2
model = BMN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
for epoch in range(2):
    train_bmn(DataLoader(TensorDataset(videos, iou), batch_size=2), model, optimizer, epoch)
