# A trainer with per-batch callbacks: clipping was registered for every batch, the step happens every third one.
# source: Deci-AI/super-gradients#653
# expect: clip-inside-accumulation
import torch
from torch import nn


class ClipCallback:
    def __init__(self, value):
        self.value = value

    def after_backward(self, trainer):
        nn.utils.clip_grad_value_(trainer.net.parameters(), self.value)  # <- clip-inside-accumulation, cause


class Trainer:
    def __init__(self, net, callbacks, batch_accumulate=3):
        self.net, self.callbacks, self.batch_accumulate = net, callbacks, batch_accumulate
        self.optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
        self.criterion = nn.SmoothL1Loss()

    def _backward_step(self, loss, batch_idx):
        (loss / self.batch_accumulate).backward()
        for callback in self.callbacks:  # <- cause
            callback.after_backward(self)  # <- cause
        if (batch_idx + 1) % self.batch_accumulate == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()

    def train(self, x, y, epochs=4):
        for epoch in range(epochs):
            for batch_idx, idx in enumerate(torch.arange(len(x)).split(8)):
                loss = self.criterion(self.net(x[idx]), y[idx])
                self._backward_step(loss, batch_idx)
            print(f"Train epoch {epoch}: {loss.item():.4f}")


torch.manual_seed(2)
x = torch.randn(72, 9, dtype=torch.float64)
net = nn.Sequential(nn.Linear(9, 30), nn.Hardswish(), nn.Linear(30, 2)).double()
Trainer(net, [ClipCallback(0.02)]).train(x, torch.stack([x.sum(1), x.prod(1)], 1))
