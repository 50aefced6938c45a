# The clip sits at the end of training_step, which runs before the trainer's backward, so it clips the last batch's.
# source: simchowitzlabpublic/nano-world-model#22
# expect: clip-without-effect
import torch
from torch import nn


class WorldModel(nn.Module):
    def __init__(self, obs=6, act=2, hidden=24, gradient_clip_norm=0.5):
        super().__init__()
        self.gradient_clip_norm = gradient_clip_norm
        self.dynamics = nn.Sequential(nn.Linear(obs + act, hidden), nn.Mish(), nn.Linear(hidden, obs))

    def training_step(self, batch):
        obs, action, nxt = batch
        pred = self.dynamics(torch.cat([obs, action], 1))
        loss = (pred - nxt).pow(2).sum(1).mean()
        nn.utils.clip_grad_norm_(self.parameters(), self.gradient_clip_norm)  # <- clip-without-effect, cause
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Trainer:
    def fit(self, model, batches, max_epochs=2):
        optimizer = model.configure_optimizers()
        for epoch in range(max_epochs):
            for batch in batches:
                loss = model.training_step(batch)
                optimizer.zero_grad(set_to_none=False)
                loss.backward()
                optimizer.step()
            print(epoch, loss.item())


torch.manual_seed(1)
obs, action = torch.randn(10, 16, 6), torch.randn(10, 16, 2)
nxt = 0.9 * obs + action.repeat(1, 1, 3)
Trainer().fit(WorldModel(), list(zip(obs, action, nxt, strict=True)))
