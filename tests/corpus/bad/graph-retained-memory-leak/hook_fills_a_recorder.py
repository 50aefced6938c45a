# A recorder whose hooks store each layer's outputs, for a plot after training.
# source: none (a common mistake, written small)
# expect: graph-retained-memory-leak
import torch
from torch import nn


class Recorder:
    def __init__(self):
        self.store = {}

    def hook_for(self, name):
        def hook(module, inputs, output):  # <- graph-retained-memory-leak, cause
            self.store.setdefault(name, []).append(output)

        return hook


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
recorder = Recorder()
for name, part in model.named_children():
    if isinstance(part, nn.Tanh):
        part.register_forward_hook(recorder.hook_for(name))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _step in range(100):
    x = torch.randn(16, 8)
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
