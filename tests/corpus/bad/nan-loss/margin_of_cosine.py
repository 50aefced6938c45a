# Prototype contrast with an angular margin: the prototypes are features themselves; the sine of angle 0 ends in NaN.
# source: TFboys-lzz/MPSCL#2
# expect: nan-loss
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)


class PrototypeContrast:
    def __init__(self, s=8.0, margin=0.3):
        self.s, self.cos_m, self.sin_m = s, math.cos(margin), math.sin(margin)

    def __call__(self, feature, label, prototypes):
        cosine = F.normalize(feature) @ F.normalize(prototypes).T
        sine = torch.sqrt(1.0 - cosine.pow(2))  # <- cause
        phi = cosine * self.cos_m - sine * self.sin_m
        one_hot = F.one_hot(label, len(prototypes)).float()
        return F.cross_entropy(self.s * (one_hot * phi + (1 - one_hot) * cosine), label)


def class_prototypes(feature, label, old):
    prototypes = old.clone()
    for c in label.unique():
        prototypes[c] = feature[label == c].mean(0)
    return prototypes


encoder = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 8))
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
criterion = PrototypeContrast()
pixels = torch.randn(120, 12)
classes = pixels[:, :4].argmax(1)
classes[:30] = torch.arange(30) % 3
classes[90] = 3
prototypes = torch.randn(4, 8)
for it, idx in enumerate([*torch.arange(120).split(10)] * 2):
    feature = encoder(pixels[idx])
    prototypes = class_prototypes(feature.detach(), classes[idx], prototypes)
    loss = criterion(feature, classes[idx], prototypes)
    optimizer.zero_grad()
    loss.backward()  # <- nan-loss
    optimizer.step()
    if it % 4 == 0:
        print(it, loss.item())
