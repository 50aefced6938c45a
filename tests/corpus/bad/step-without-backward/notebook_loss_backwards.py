# An autoencoder notebook in which the backward call sits in a function that is only used for a memory check.
# source: a common pattern; documented in https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html
# expect: step-without-backward
import torch
from torch import nn, optim

torch.manual_seed(6)
net = nn.Sequential(nn.Linear(30, 8), nn.Tanh(), nn.Linear(8, 30))
opt = optim.RMSprop(net.parameters(), lr=1e-3)
spectra = torch.randn(90, 3) @ torch.randn(3, 30)


def memory_check(batch):
    probe = nn.Sequential(nn.Linear(30, 8), nn.Tanh(), nn.Linear(8, 30))
    probe_loss = (probe(batch) - batch).square().mean()
    probe_loss.backward()
    return batch.numel() + sum(p.numel() for p in probe.parameters())


def fit(n_updates=20, batch_size=15):
    history = []
    it = iter(torch.randperm(90).split(batch_size))
    while len(history) < n_updates:
        try:
            batch = spectra[next(it)]
        except StopIteration:
            it = iter(torch.randperm(90).split(batch_size))
            continue
        opt.zero_grad()
        loss = (net(batch) - batch).square().mean()  # <- cause
        opt.step()  # <- step-without-backward, cause
        history.append(loss.item())
    return history


print("elements", memory_check(spectra[:15]))
history = fit()
print(f"first {history[0]:.4f} last {history[-1]:.4f}")
