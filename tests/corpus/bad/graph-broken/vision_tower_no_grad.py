# A vision-language model is told to tune its vision tower, whose forward() is still decorated with no_grad.
# source: TinyLLaVA/TinyLLaVA_Factory#17
# expect: graph-broken
# severity: hint (some cut off a part on purpose)
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class TrainingArguments:
    tune_vision_tower: bool = True
    learning_rate: float = 2e-3
    num_train_epochs: int = 2


class VisionTower(nn.Module):
    def __init__(self, patch=4, dim=16):
        super().__init__()
        self.patch_embedding = nn.Conv2d(3, dim, patch, stride=patch)
        self.block = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.GELU())

    @torch.no_grad()  # <- cause
    def forward(self, images):
        patches = self.patch_embedding(images).flatten(2).transpose(1, 2)
        return patches + self.block(patches)


class TinyLlava(nn.Module):
    def __init__(self, vocab=20, dim=16):
        super().__init__()
        self.vision_tower, self.mm_projector = VisionTower(dim=dim), nn.Linear(dim, dim)
        self.embed_tokens, self.lm_head = nn.Embedding(vocab, dim), nn.Linear(dim, vocab)
        self.language_model = nn.GRU(dim, dim, batch_first=True)

    def forward(self, images, input_ids):
        prefix = self.mm_projector(self.vision_tower(images))
        hidden, _ = self.language_model(torch.cat([prefix, self.embed_tokens(input_ids)], dim=1))
        return self.lm_head(hidden[:, -input_ids.size(1) :])


def train(model, args, images, ids):
    for p in model.vision_tower.parameters():
        p.requires_grad = args.tune_vision_tower
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=args.learning_rate)
    for epoch in range(args.num_train_epochs):
        for idx in torch.randperm(len(ids)).split(8):
            logits = model(images[idx], ids[idx, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[idx, 1:].flatten())
            loss.backward()  # <- graph-broken
            optimizer.step()
            optimizer.zero_grad()
        print({"epoch": epoch, "loss": round(loss.item(), 4)})


torch.manual_seed(5)
train(TinyLlava(), TrainingArguments(), torch.rand(40, 3, 8, 8), torch.randint(0, 20, (40, 6)))
