# Multi-task tagging with one optimizer per head: each of them was given the backbone as well.
# source: allenai/allennlp#4911
# expect: params-in-two-optimizers
# severity: hint (sharing a part between optimizers can be meant)
import itertools

import torch
import torch.nn as nn
from torch import optim


class MultiTaskModel(nn.Module):
    def __init__(self, vocab=30, dim=16, heads=None):
        super().__init__()
        self.embedder = nn.Embedding(vocab, dim)
        self.backbone = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.heads = nn.ModuleDict({name: nn.Linear(2 * dim, n) for name, n in heads.items()})

    def shared_parameters(self):
        return itertools.chain(self.embedder.parameters(), self.backbone.parameters())

    def forward(self, tokens, task):
        hidden, _ = self.backbone(self.embedder(tokens))
        return self.heads[task](hidden)


torch.manual_seed(17)
model = MultiTaskModel(heads={"pos": 4, "ner": 3})
criterion = nn.CrossEntropyLoss()
pos_optimizer = optim.Adam([*model.shared_parameters(), *model.heads["pos"].parameters()], lr=3e-3)
ner_params = [*model.shared_parameters(), *model.heads["ner"].parameters()]  # <- cause
ner_optimizer = optim.Adam(ner_params, lr=3e-3)  # <- params-in-two-optimizers, cause

sentences = torch.randint(0, 30, (60, 6))
gold = {"pos": sentences % 4, "ner": (sentences > 10).long() + (sentences > 20).long()}
for epoch in range(3):
    for i, idx in enumerate(torch.randperm(60).split(10)):
        task, optimizer = ("pos", pos_optimizer) if i % 2 == 0 else ("ner", ner_optimizer)
        optimizer.zero_grad()
        logits = model(sentences[idx], task)
        loss = criterion(logits.flatten(0, 1), gold[task][idx].flatten())
        loss.backward()
        optimizer.step()
        if i >= 4:
            print(f"epoch {epoch} {task}: {loss.item():.4f}")
