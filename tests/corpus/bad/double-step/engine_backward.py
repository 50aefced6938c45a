# An engine whose backward() also runs the update at the accumulation boundary, in a trainer that then steps again.
# source: huggingface/transformers#45656
# expect: double-step
import torch
from torch import nn


class Engine:
    def __init__(self, module, optimizer, accumulation=2):
        self.module, self.optimizer, self.accumulation = module, optimizer, accumulation
        self.micro_steps = 0

    def is_boundary(self):
        return self.micro_steps % self.accumulation == 0

    def backward(self, loss):
        (loss / self.accumulation).backward()
        self.micro_steps += 1
        if self.is_boundary():
            self.optimizer.step()  # <- cause


def training_loop(engine, batches):
    engine.module.train()
    tr_loss = 0.0
    for inputs in batches:
        hidden = engine.module[0](inputs[:, :-1])
        hidden, _ = engine.module[1](hidden)
        logits = engine.module[2](hidden)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), inputs[:, 1:].flatten())
        engine.backward(loss)
        if engine.is_boundary():
            engine.optimizer.step()  # <- double-step, cause
            engine.module.zero_grad()
        tr_loss += loss.item()
    return tr_loss / len(batches)


torch.manual_seed(2)
lm = nn.ModuleList([nn.Embedding(25, 12), nn.GRU(12, 16, batch_first=True), nn.Linear(16, 25)])
engine = Engine(lm, torch.optim.Adam(lm.parameters(), lr=2e-3))
for _ in range(2):
    print("train loss", training_loop(engine, list(torch.randint(0, 25, (16, 4, 7)))))
