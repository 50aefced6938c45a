# A latent world model: warm-up and cosine are counted in updates, yet the schedule advances once an epoch.
# source: galilai-group/stable-worldmodel#280
# expect: scheduler-cadence
import math

import torch
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR


def linear_warmup_cosine(warmup_steps, max_steps):
    def factor(step):
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        return 0.5 * (1 + math.cos(math.pi * (step - warmup_steps) / (max_steps - warmup_steps)))

    return factor


class Trainer:
    def __init__(self, model, loader, max_epochs=6):
        self.model, self.loader, self.max_epochs = model, loader, max_epochs
        total_steps = max_epochs * len(loader)
        self.optimizer = AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
        self.scheduler = LambdaLR(self.optimizer, linear_warmup_cosine(int(0.2 * total_steps), total_steps))

    def training_step(self, batch):
        state, action, following = batch
        latent = self.model["encoder"](state)
        predicted = self.model["predictor"](torch.cat([latent, action], dim=-1))
        return (self.model["decoder"](predicted) - following).square().mean()

    def fit(self):
        for epoch in range(self.max_epochs):
            for batch in self.loader:
                loss = self.training_step(batch)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                self.optimizer.step()
            self.scheduler.step()  # <- scheduler-cadence, cause
            print(f"epoch {epoch} loss {loss.item():.4f} lr {self.optimizer.param_groups[0]['lr']:.2e}")


torch.manual_seed(5)
model = nn.ModuleDict(
    {
        "encoder": nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 8)),
        "predictor": nn.Sequential(nn.Linear(10, 16), nn.GELU(), nn.Linear(16, 8)),
        "decoder": nn.Linear(8, 6),
    }
)
states, actions = torch.randn(120, 6), torch.randn(120, 2)
following = 0.9 * states + 0.1 * actions.sum(1, keepdim=True)
loader = list(zip(states.split(8), actions.split(8), following.split(8), strict=True))
Trainer(model, loader).fit()
