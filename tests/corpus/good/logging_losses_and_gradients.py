# Everything is logged, and nothing holds a graph: loss.item(), loss.detach() in a running sum, copies of gradients,
# gradients of activations kept by retain_grad(), hooks that only look.
# source: docs.pytorch.org/docs/stable/notes/faq.html (My model reports out of memory), discuss.pytorch.org/t/28162
import torch
from torch import nn

torch.manual_seed(86)
seen = {"hook": []}
model = nn.Sequential(nn.Linear(6, 24), nn.Mish(), nn.Linear(24, 2))
model[0].weight.register_hook(lambda g: seen["hook"].append(g.abs().max().item()))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses, running, grads, total_loss = [], torch.zeros(()), [], 0

for i in range(60):
    x = torch.randn(32, 6)
    hidden = model[1](model[0](x))
    hidden.retain_grad()
    loss = nn.functional.cross_entropy(model[2](hidden), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    grads.append({n: p.grad.detach().clone() for n, p in model.named_parameters()})
    seen["activation"] = hidden.grad.norm().item()
    optimizer.step()
    losses.append(loss.detach())
    running += loss.detach()
    total_loss += float(loss)
    if (i + 1) % 20 == 0:
        print(i, f"{running.item() / 20:.4f} {seen['activation']:.5f} {seen['hook'][-1]:.5f}")
        running = torch.zeros(())
print(torch.stack(losses).mean().item(), grads[-1]["0.weight"].norm().item(), total_loss)
