# Validation under attack: in eval mode, backward runs through the model and leaves gradients in it; training clears
# them before its own backward. The weights are swapped for an average during validation and put back.
# source: locuslab/fast_adversarial CIFAR10/utils.py (attack_pgd, evaluate_pgd)
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(91)


def attack_pgd(model, x, y, epsilon=0.05, alpha=0.02, attack_iters=3):
    delta = torch.zeros_like(x).uniform_(-epsilon, epsilon)
    delta.requires_grad = True
    for _ in range(attack_iters):
        output = model(x + delta)
        index = torch.where(output.max(1)[1] == y)[0]
        if len(index) == 0:
            break
        loss = F.cross_entropy(output, y)
        loss.backward()
        grad = delta.grad.detach()
        delta.data[index] = torch.clamp(delta + alpha * torch.sign(grad), -epsilon, epsilon)[index]
        delta.grad.zero_()
    return delta.detach()


def evaluate_pgd(model, x, y):
    model.eval()
    delta = attack_pgd(model, x, y)
    with torch.no_grad():
        output = model(x + delta)
        return F.cross_entropy(output, y).item(), (output.argmax(1) == y).float().mean().item()


model = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
average = {k: v.clone() for k, v in model.state_dict().items()}
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
val_x = torch.rand(60, 4)
val_y = (val_x[:, 0] > val_x[:, 1]).long()
for step in range(1, 41):
    model.train()
    x = torch.rand(32, 4)
    opt.zero_grad()
    loss = F.cross_entropy(model(x), (x[:, 0] > x[:, 1]).long())
    loss.backward()
    opt.step()
    for k, v in model.state_dict().items():
        average[k] = v.clone() if v.dtype == torch.long else average[k] * 0.8 + v * 0.2
    if step % 10 == 0:
        backup = copy.deepcopy(model.state_dict())
        model.load_state_dict(average)
        print(step, loss.item(), evaluate_pgd(model, val_x, val_y))
        model.load_state_dict(backup)
