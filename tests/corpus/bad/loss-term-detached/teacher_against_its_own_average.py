# A student's consistency term compares two passes of the frozen teacher, because a slip passes the wrong module.
# source: none (a common mistake, written small)
# expect: loss-term-detached
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(9)
expert = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4)).requires_grad_(False)
pupil = nn.Linear(6, 4)
optimizer = torch.optim.SGD(pupil.parameters(), lr=0.1)


def noisy(x):
    return x + 0.1 * torch.randn_like(x)


def run_epoch(batches):
    for x in batches:
        wanted = F.softmax(expert(x), dim=1)
        hard = F.cross_entropy(pupil(x), wanted.argmax(1))
        guess = F.softmax(expert(noisy(x)), dim=1)  # <- cause
        consistency = F.mse_loss(guess, wanted)  # <- loss-term-detached, cause
        loss = hard + 5 * consistency
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


run_epoch(torch.randn(40, 16, 6))
