# No backward at all: gradients come from torch.autograd.grad, are averaged over two losses and assigned to .grad.
# source: docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
# and discuss.pytorch.org/t/28162 (the gradients of several losses looked at one by one)
import torch
from torch import nn
from torch.autograd import grad

torch.manual_seed(40)
model = nn.Sequential(nn.Linear(4, 12), nn.ELU(), nn.Linear(12, 3))
params = tuple(model.parameters())
optimizer = torch.optim.RMSprop(params, lr=5e-3)

step = 0
while step < 40:
    x = torch.randn(48, 4)
    logits = model(x)
    ce = nn.functional.cross_entropy(logits, x[:, :3].argmax(1))
    entropy = -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()
    grads_ce = grad(ce, params, retain_graph=True)
    grads_entropy = grad(entropy, params)
    for p, g1, g2 in zip(params, grads_ce, grads_entropy, strict=True):
        p.grad = g1 - 0.05 * g2
    optimizer.step()
    step += 1
    if step % 10 == 0:
        print(step, round(ce.item(), 4), round(entropy.item(), 4))
