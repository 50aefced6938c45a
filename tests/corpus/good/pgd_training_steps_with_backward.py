# Training on PGD examples: seven backward() calls for the input also fill the gradients of the weights, and one
# zero_grad() between the attack and the real backward throws them away.
# source: Harry24k/adversarial-attacks-pytorch torchattacks/attacks/pgd.py, arxiv.org/abs/1706.06083
import torch
from torch import nn

torch.manual_seed(224)
x = torch.rand(400, 16)
y = (x[:, :8].sum(1) > x[:, 8:].sum(1)).long()
model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 2))
loss_fn = nn.CrossEntropyLoss()
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def pgd(images, labels, eps=0.02, alpha=0.006, steps=7):
    adv = (images + torch.empty_like(images).uniform_(-eps, eps)).clamp(0, 1)
    for _ in range(steps):
        adv = adv.detach().requires_grad_()
        loss_fn(model(adv), labels).backward()
        adv = adv.detach() + alpha * adv.grad.sign()
        adv = (images + (adv - images).clamp(-eps, eps)).clamp(0, 1)
    return adv


for epoch in range(10):
    for batch in torch.randperm(400).split(25):
        adv = pgd(x[batch], y[batch])
        opt.zero_grad()
        loss = loss_fn(model(adv), y[batch])
        loss.backward()
        opt.step()
    with torch.no_grad():
        clean = (model(x).argmax(1) == y).float().mean().item()
    print(f"epoch {epoch} adversarial loss {loss.item():.4f} clean accuracy {clean:.3f}")
