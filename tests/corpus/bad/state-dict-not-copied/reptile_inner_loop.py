# Reptile: before each task the weights are put aside for going back to, in a dictionary of the same tensors.
# source: none (a common mistake, written small)
# expect: state-dict-not-copied
import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
inner = torch.optim.SGD(model.parameters(), lr=0.02)


def adapt(phase):
    start = dict(model.state_dict().items())  # <- cause
    for x in torch.rand(8, 10, 1):
        inner.zero_grad()
        (model(x) - torch.sin(6 * x + phase)).pow(2).mean().backward()
        inner.step()
    adapted = {key: value.clone() for key, value in model.state_dict().items()}
    model.load_state_dict(start)  # <- state-dict-not-copied
    return start, adapted


for task in range(4):
    before, after = adapt(phase=task / 2)
    model.load_state_dict({key: before[key] + 0.2 * (after[key] - before[key]) for key in before})
