# The same script for full precision: autocast and the scaler are there, both switched off by a flag.
# source: docs.pytorch.org/tutorials/recipes/recipes/amp_recipe.html (use_amp)
import torch
from torch import nn, optim

use_amp = False
torch.manual_seed(79)


def make_model(in_size, out_size, num_layers):
    layers = []
    for _ in range(num_layers - 1):
        layers += [nn.Linear(in_size, in_size), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(in_size, out_size))


net = make_model(12, 4, 3)
opt = optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", enabled=use_amp)
loss_fn = nn.MSELoss()
data = [torch.randn(32, 12) for _ in range(10)]
targets = [d[:, :4].clamp(min=0) for d in data]

for epoch in range(5):
    for inp, target in zip(data, targets, strict=True):
        with torch.autocast(device_type="cpu", dtype=torch.float16, enabled=use_amp):
            output = net(inp)
            loss = loss_fn(output, target)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.5)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
    print(epoch, loss.item())
checkpoint = {"model": net.state_dict(), "optimizer": opt.state_dict(), "scaler": scaler.state_dict()}
