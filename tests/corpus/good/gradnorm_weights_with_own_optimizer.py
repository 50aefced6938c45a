# GradNorm: task weights have an optimizer and a loss of their own, made from the norms of gradients (create_graph);
# their .grad is assigned by autograd.grad, since the backward of the network's loss has filled it with something else.
# source: brianlan/pytorch-grad-norm train.py, arxiv.org/abs/1711.02257
import torch
from torch import nn

torch.manual_seed(254)
trunk = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
heads = nn.ModuleList([nn.Linear(32, 1), nn.Linear(32, 1)])
weights = nn.Parameter(torch.ones(2))
optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()], lr=5e-3)
weight_optimizer = torch.optim.SGD([weights], lr=0.02)
scales, initial, alpha = (1.0, 3.0), None, 0.5
mixing = torch.randn(5, 2)

for step in range(120):
    x = torch.randn(32, 5)
    truth = (0.5 * x @ mixing).tanh()
    features = trunk(x)
    losses = torch.stack(
        [
            nn.functional.mse_loss(head(features), s * truth[:, k : k + 1])
            for k, (head, s) in enumerate(zip(heads, scales, strict=True))
        ]
    )
    if initial is None:
        initial = losses.detach()
    optimizer.zero_grad()
    (weights * losses).sum().backward(retain_graph=True)

    shared = trunk[2].weight
    norms = torch.stack(
        [
            torch.autograd.grad(w * loss, shared, create_graph=True)[0].norm()
            for w, loss in zip(weights, losses, strict=True)
        ]
    )
    rate = losses.detach() / initial
    goal = (norms.mean() * (rate / rate.mean()) ** alpha).detach()
    weights.grad = torch.autograd.grad((norms - goal).abs().sum(), weights)[0]
    optimizer.step()
    weight_optimizer.step()
    with torch.no_grad():
        weights.clamp_(min=0.01)
        weights.mul_(2 / weights.sum())
    if step % 24 == 0:
        print(step, [round(v, 3) for v in losses.tolist()], "weights", [round(v, 3) for v in weights.tolist()])
