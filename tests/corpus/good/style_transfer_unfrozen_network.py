# LBFGS moves an image through a network that is not frozen: the closure clears the image's gradient each time; those
# of the network, which no optimizer holds, pile up unused.
# source: pytorch/tutorials advanced_source/neural_style_tutorial.py (before it called model.requires_grad_(False))
import torch
from torch import nn

torch.manual_seed(64)
cnn = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.Tanh(), nn.Conv2d(6, 8, 3, padding=1)).eval()
content = torch.rand(1, 3, 12, 12)
with torch.no_grad():
    target = cnn(content)
image = torch.rand(1, 3, 12, 12, requires_grad=True)
optimizer = torch.optim.LBFGS([image], max_iter=5)
for step in range(8):

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(cnn(image), target)
        loss.backward()
        return loss

    print(step, optimizer.step(closure).item())
