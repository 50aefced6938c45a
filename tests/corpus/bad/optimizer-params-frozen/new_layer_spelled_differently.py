# A detector in which all but the new attention layers are to be frozen; the name that is looked for is not theirs.
# source: open-mmlab/mmdetection#4040
# expect: optimizer-params-frozen
# raises: RuntimeError
# cause: not found (two statements freeze)
import torch
import torch.nn.functional as F
from torch import nn


class Neck(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.lateral = nn.Conv2d(channels, channels, 1)
        self.ats = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, channels, 1), nn.Sigmoid())

    def forward(self, x):
        x = self.lateral(x)
        return x * self.ats(x)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU())
        self.neck = Neck()
        self.roi_head = nn.Linear(8, 5)
        self._freeze()

    def _freeze(self):
        for part in (self.backbone, self.roi_head):
            for v in part.parameters():
                v.requires_grad = False
        for name, para in self.neck.named_parameters():
            if "ATS" not in name:  # <- cause
                para.requires_grad = False  # <- cause

    def forward_train(self, img, gt_labels):
        roi_feats = self.neck(self.backbone(img)).mean((2, 3))
        return {"loss_cls": F.cross_entropy(self.roi_head(roi_feats), gt_labels)}


torch.manual_seed(0)
model = Detector()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)  # <- optimizer-params-frozen
for i in range(10):
    img = torch.rand(4, 3, 8, 8)
    losses = model.forward_train(img, img.mean((1, 2, 3)).mul(100).long() % 5)
    loss = sum(losses.values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"Iter [{i + 1}/10] loss: {loss.item():.4f}")
