# A small spiking network with surrogate gradients whose membrane potentials are not reset between batches.
# source: jeshraghian/snntorch#250
# expect: carried-state-not-detached
# cause: not found (the state is kept inside a layer)
# raises: RuntimeError
import torch
from torch import nn


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, mem):
        ctx.save_for_backward(mem)
        return (mem > 0).float()

    @staticmethod
    def backward(ctx, grad_output):
        (mem,) = ctx.saved_tensors
        return grad_output / (1 + 10 * mem.abs()) ** 2


class Leaky(nn.Module):
    def __init__(self, beta=0.9, threshold=1.0):
        super().__init__()
        self.beta, self.threshold, self.mem = beta, threshold, 0.0

    def forward(self, current):
        self.mem = self.beta * self.mem + current
        spk = Spike.apply(self.mem - self.threshold)
        self.mem = self.mem - spk.detach() * self.threshold
        return spk, self.mem


torch.manual_seed(3)
net = nn.Sequential(nn.Linear(8, 20), Leaky())
readout = nn.Linear(20, 3)
params = list(net.parameters()) + list(readout.parameters())
optimizer = torch.optim.Adamax(params, lr=2e-3)
data = torch.rand(12, 16, 8)
for counter, x in enumerate(data):
    logits = 0.0  # <- cause
    for _step in range(5):
        spk, _ = net(x)
        logits = logits + readout(spk)
    loss_val = nn.functional.cross_entropy(logits, x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss_val.backward()  # <- carried-state-not-detached
    optimizer.step()  # <- cause
    print(counter, loss_val.item())
