# A minGPT trainer in float16 with a GradScaler that clips the scaled gradients; unscale_ is never called.
# source: pytorch/examples#1196
# expect: clip-before-unscale
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader


@dataclass
class TrainerConfig:
    max_epochs: int = 2
    batch_size: int = 4
    grad_norm_clip: float = 1.0
    use_amp: bool = True


class Trainer:
    def __init__(self, config, model, optimizer, dataset):
        self.config, self.model, self.optimizer = config, model, optimizer
        self.train_loader = DataLoader(dataset, batch_size=config.batch_size, shuffle=True)
        self.scaler = torch.amp.GradScaler("cpu", enabled=config.use_amp, init_scale=2.0**12)

    def _run_batch(self, source, targets):
        with torch.amp.autocast("cpu", dtype=torch.float16, enabled=self.config.use_amp):
            logits = self.model(source)
            loss = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()  # <- cause
        nn.utils.clip_grad_norm_(self.model.parameters(), self.config.grad_norm_clip)  # <- clip-before-unscale, cause
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()

    def train(self):
        for epoch in range(self.config.max_epochs):
            for it, batch in enumerate(self.train_loader):
                loss = self._run_batch(batch[:, :-1], batch[:, 1:])
                if it % 4 == 0:
                    print(f"Epoch {epoch} | Iter {it} | Train Loss {loss:.5f}")


torch.manual_seed(0)
gpt = nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 20))
Trainer(TrainerConfig(), gpt, torch.optim.AdamW(gpt.parameters(), lr=3e-4), torch.randint(0, 20, (32, 9))).train()
