# A speech-like regression whose loss value is wrapped in a new tensor with requires_grad=True before backward.
# source: speechbrain/speechbrain#735
# expect: graph-broken
import torch
from torch import nn


class Brain:
    def __init__(self, modules, opt_class):
        self.modules = modules
        self.optimizer = opt_class(modules.parameters())

    def compute_forward(self, wavs):
        feats = wavs.unfold(1, 8, 4)
        return self.modules["model"](feats).mean(1)

    def compute_objectives(self, predictions, targets):
        items = [abs(p - t).item() for p, t in zip(predictions.flatten(), targets.flatten(), strict=True)]  # <- cause
        loss = sum(items) / len(items)
        return torch.tensor(loss, requires_grad=True)  # <- cause

    def fit_batch(self, wavs, targets):
        outputs = self.compute_forward(wavs)
        loss = self.compute_objectives(outputs, targets)
        loss.backward()  # <- graph-broken
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def fit(self, epochs, train_set):
        for epoch in range(epochs):
            avg = torch.stack([self.fit_batch(*batch) for batch in train_set]).mean()
            print(epoch, f"{avg.item():.4f}")


torch.manual_seed(1)
modules = nn.ModuleDict({"model": nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(), nn.Linear(16, 2))})
signals = torch.randn(5, 6, 32)
brain = Brain(modules, lambda p: torch.optim.Adam(p, lr=1e-3))
brain.fit(3, [(s, torch.stack([s.mean(1), s.std(1)], 1)) for s in signals])
