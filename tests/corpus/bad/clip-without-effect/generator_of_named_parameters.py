# A trainer keeps a generator of all weights but the biases, and hands it to the clip at every step.
# source: none (a common mistake, written small)
# expect: clip-without-effect
import torch
from torch import nn


class Trainer:
    def __init__(self, model, max_norm):
        self.model, self.max_norm = model, max_norm
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.weights = (p for name, p in model.named_parameters() if "bias" not in name)  # <- cause

    def step(self, x):
        loss = nn.functional.mse_loss(self.model(x), 30 * x.sum(1, keepdim=True))
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.weights, self.max_norm)  # <- clip-without-effect
        self.optimizer.step()


torch.manual_seed(8)
trainer = Trainer(nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 1)), max_norm=1.0)
for x in torch.randn(20, 16, 5):
    trainer.step(x)
