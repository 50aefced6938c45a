# A trainer's counter of batches begins at 0 and is tested before it is raised: its first update has one batch only.
# source: none (a common mistake, written small)
# expect: last-accumulation-window-dropped
# severity: hint (one update is too small)
import torch
from torch import nn


class Trainer:
    def __init__(self, model, accumulate_grad_batches):
        self.model, self.accumulate_grad_batches = model, accumulate_grad_batches
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        self.global_step = 0

    def optimizer_step(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()  # <- last-accumulation-window-dropped
        self.optimizer.zero_grad()

    def train_batch(self, x):
        loss = nn.functional.l1_loss(self.model(x), x.amax(1, keepdim=True)) / self.accumulate_grad_batches
        loss.backward()
        if self.global_step % self.accumulate_grad_batches == 0:  # <- cause
            self.optimizer_step()  # <- cause
        self.global_step += 1  # <- cause


torch.manual_seed(0)
trainer = Trainer(nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Linear(16, 1)), accumulate_grad_batches=3)
for x in torch.randn(61, 8, 5):
    trainer.train_batch(x)
