# Each sequence's last state is cached for the next epoch without detach; the error comes in the second epoch.
# source: https://discuss.pytorch.org/t/runtimeerror-trying-to-backward-through-the-graph-a-second-time-but-the-buffers-have-already-been-freed-specify-retain-graph-true-when-calling-backward-the-first-time/6795
# expect: carried-state-not-detached
# cause: not found (the state is kept in a container)
# raises: RuntimeError
from itertools import pairwise

import torch
from torch import nn

torch.manual_seed(4)


class StatefulTrainer:
    def __init__(self, n_sequences):
        self.cell = nn.GRUCell(3, 12)
        self.head = nn.Linear(12, 3)
        self.params = [*self.cell.parameters(), *self.head.parameters()]
        self.optimizer = torch.optim.AdamW(self.params, lr=3e-3)
        self.memory = [torch.zeros(4, 12) for _ in range(n_sequences)]

    def train_it(self, k, x):
        state = self.memory[k]  # <- cause
        loss = 0.0
        for now, then in pairwise(x):
            state = self.cell(now, state)
            loss = loss + (self.head(state) - then).square().mean()
        self.memory[k] = state  # <- cause
        loss = loss / (len(x) - 1)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # <- carried-state-not-detached
        nn.utils.clip_grad_norm_(self.params, 1.0)
        self.optimizer.step()
        return loss.item()


sequences = torch.randn(10, 6, 4, 3).cumsum(1) / 3
trainer = StatefulTrainer(len(sequences))
for epoch in range(3):
    for k, x in enumerate(sequences):
        loss = trainer.train_it(k, x)
    print(f"epoch {epoch}: {loss:.4f}")
