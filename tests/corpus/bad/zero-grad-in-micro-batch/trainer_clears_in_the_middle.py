# A trainer clears when the counter of its windows stands at half, so the first half of each window is lost.
# source: none (a common mistake, written small)
# expect: zero-grad-in-micro-batch
import torch
from torch import nn


class Trainer:
    def __init__(self, model, accumulate=6):
        self.model, self.accumulate, self.seen = model, accumulate, 0
        self.optim = torch.optim.AdamW(model.parameters(), lr=2e-3)

    def training_step(self, batch):
        self.seen += 1
        if self.seen == self.accumulate // 2:  # <- cause
            self.optim.zero_grad()  # <- zero-grad-in-micro-batch, cause
        tokens, labels = batch
        loss = nn.functional.cross_entropy(self.model(tokens).mean(1), labels) / self.accumulate
        loss.backward()
        if self.seen == self.accumulate:
            self.optim.step()  # <- cause
            self.seen = 0
        return loss.item() * self.accumulate


torch.manual_seed(1)
trainer = Trainer(nn.Sequential(nn.Embedding(30, 12), nn.Linear(12, 4)))
for tokens in torch.randint(0, 30, (60, 8, 5)):
    trainer.training_step((tokens, tokens.sum(1) % 4))
