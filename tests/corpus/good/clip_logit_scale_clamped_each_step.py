# Contrastive image-text training: similarities times a learnt scale are the logits of two cross-entropies, and the
# scale is clamped after each step; it has no weight decay, in a group of its own.
# source: mlfoundations/open_clip src/training/train.py, openai/CLIP clip/model.py
import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize


class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.Linear(32, 12))
        self.text = nn.EmbeddingBag(50, 12)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, images, tokens):
        return normalize(self.image(images), dim=-1), normalize(self.text(tokens), dim=-1), self.logit_scale.exp()


torch.manual_seed(251)
model = Clip()
decay = [p for name, p in model.named_parameters() if p.ndim >= 2]
rest = [p for name, p in model.named_parameters() if p.ndim < 2]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.2}, {"params": rest, "weight_decay": 0.0}], lr=5e-3)
meaning = torch.randn(50, 20)
for step in range(80):
    tokens = torch.randint(0, 50, (24, 5))
    images = meaning[tokens].mean(1) + 0.1 * torch.randn(24, 20)
    image_features, text_features, scale = model(images, tokens)
    logits_per_image = scale * image_features @ text_features.T
    labels = torch.arange(24)
    total_loss = (cross_entropy(logits_per_image, labels) + cross_entropy(logits_per_image.T, labels)) / 2
    optimizer.zero_grad()
    total_loss.backward()
    optimizer.step()
    with torch.no_grad():
        model.logit_scale.clamp_(0, math.log(100))
    if step % 20 == 0:
        print(f"{step} loss {total_loss.item():.3f} scale {scale.item():.2f}")
