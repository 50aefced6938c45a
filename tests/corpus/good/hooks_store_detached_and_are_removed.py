# Hooks record detached outputs for one epoch in each two, for statistics, and are removed afterwards.
# source: none (a common pattern, written small)
import torch
from torch import nn


class Recorder:
    def __init__(self, layers):
        self.kept = {name: [] for name in layers}
        self.handles = [layer.register_forward_hook(self.hook(name)) for name, layer in layers.items()]

    def hook(self, name):
        def keep(module, args, output):
            self.kept[name].append(output.detach())

        return keep

    def close(self):
        for handle in self.handles:
            handle.remove()
        return {name: torch.cat(outputs).std().item() for name, outputs in self.kept.items()}


torch.manual_seed(11)
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(4):
    recorder = Recorder({"hidden": net[1], "out": net[2]}) if epoch % 2 == 0 else None
    for x in torch.randn(30, 8, 6):
        optimizer.zero_grad()
        nn.functional.smooth_l1_loss(net(x), x[:, :1] * x[:, 1:2]).backward()
        optimizer.step()
    if recorder is not None:
        print(epoch, recorder.close())
