# Fine-tuning with the trainable weights in a filter: the optimizer has taken all out of it, so the clip gets none.
# source: none (a common mistake, written small)
# expect: clip-without-effect
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
net[0].requires_grad_(False)
trainable = filter(lambda p: p.requires_grad, net.parameters())  # <- cause
optimizer = torch.optim.SGD(trainable, lr=0.01)

for x in torch.randn(20, 16, 6):
    loss = nn.functional.mse_loss(net(x), 30 * x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(trainable, 1.0)  # <- clip-without-effect
    optimizer.step()
