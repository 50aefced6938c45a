# An agent's update_params() advances an inverse-square-root warm-up and only then lets the optimizer step.
# source: facebookresearch/ParlAI#2042
# expect: scheduler-before-optimizer
import torch
from torch import nn, optim


class TorchAgent:
    def __init__(self, warmup_updates=4, lr=5e-3):
        self.model = nn.Sequential(nn.EmbeddingBag(30, 12), nn.ReLU(), nn.Linear(12, 30))
        self.optimizer = optim.Adamax(self.model.parameters(), lr)
        self.scheduler = optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda n: min((n + 1) / warmup_updates, (warmup_updates / (n + 1)) ** 0.5)
        )

    def train_step(self, batch):
        self.model.train()
        self.model.zero_grad()
        scores = self.model(batch[:, :-1])
        loss = nn.functional.cross_entropy(scores, batch[:, -1])
        loss.backward()
        self.update_params()
        return loss.item()

    def update_params(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.1)
        self.scheduler.step()  # <- scheduler-before-optimizer, cause
        self.optimizer.step()


torch.manual_seed(1)
agent = TorchAgent()
for k, batch in enumerate(torch.randint(0, 30, (16, 8, 6))):
    loss = agent.train_step(batch)
    if k % 5 == 0:
        print(k, round(loss, 4), agent.scheduler.get_last_lr())
