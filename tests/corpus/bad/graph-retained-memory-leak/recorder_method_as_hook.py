# An object records activations for a histogram: its method is the hook, and what it appends still has its graph.
# source: none (a common mistake, written small)
# expect: graph-retained-memory-leak
import torch
from torch import nn


class Recorder:
    def __init__(self, model):
        self.outputs = []
        for layer in model:
            if isinstance(layer, nn.ReLU):
                layer.register_forward_hook(self.record)  # <- cause

    def record(self, module, args, output):  # <- graph-retained-memory-leak, cause
        self.outputs.append(output)  # <- cause


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
recorder = Recorder(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x in torch.randn(120, 16, 6):
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(torch.cat([out.flatten() for out in recorder.outputs]).histc(5).tolist())
