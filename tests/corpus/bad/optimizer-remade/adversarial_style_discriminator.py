# Multi-modal segmentation with a style discriminator whose Adam is made inside the loop over batches.
# source: Wangyixinxin/ACN#9
# expect: optimizer-remade
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)
full_model = nn.Conv2d(4, 6, 3, padding=1)
missing_model = nn.Conv2d(4, 6, 3, padding=1)
classifier = nn.Conv2d(6, 2, 1)
d_style = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 12), nn.LeakyReLU(0.2), nn.Linear(12, 1))
optimizer = torch.optim.Adam(
    [*full_model.parameters(), *missing_model.parameters(), *classifier.parameters()], lr=2e-3, weight_decay=1e-5
)
scans = torch.randn(40, 4, 8, 8)
tumours = (scans.mean(1) > 0).long()
real_label, fake_label = 1.0, 0.0


def bce_loss(y_pred, y_label):
    return F.binary_cross_entropy_with_logits(y_pred, torch.full_like(y_pred, y_label))


for epoch in range(2):
    for scan, tumour in zip(scans.split(4), tumours.split(4), strict=True):
        optimizer_d_style = torch.optim.Adam(d_style.parameters(), lr=1e-4)  # <- optimizer-remade, cause
        one_modality = scan * torch.tensor([1.0, 0.0, 0.0, 0.0]).view(1, 4, 1, 1)
        style_full, style_missing = full_model(scan), missing_model(one_modality)

        optimizer.zero_grad()
        seg_loss = F.cross_entropy(classifier(style_full), tumour) + F.cross_entropy(classifier(style_missing), tumour)
        adv_loss = bce_loss(d_style(style_missing), real_label)
        (seg_loss + 0.1 * adv_loss).backward()
        optimizer.step()

        optimizer_d_style.zero_grad()
        d_loss = bce_loss(d_style(style_full.detach()), real_label) + bce_loss(
            d_style(style_missing.detach()), fake_label
        )
        d_loss.backward()
        optimizer_d_style.step()
    print(f"epoch {epoch}: seg {seg_loss.item():.4f} adv {adv_loss.item():.4f} d {d_loss.item():.4f}")
