# TRADES: the loss function puts the model into eval mode for the attack and never back.
# source: yaodongyu/TRADES trades.py, with its model.train() after the attack left out
# expect: eval-mode-left-on
# cause: not found (the attack, which needs eval mode, and the training call the model in one function)
import torch
import torch.nn.functional as F
from torch import nn, optim


def trades_loss(model, x_natural, y, optimizer, step_size=0.05, epsilon=0.2, perturb_steps=2, beta=1.0):
    criterion_kl = nn.KLDivLoss(reduction="sum")
    model.eval()  # <- eval-mode-left-on
    batch_size = len(x_natural)
    x_adv = x_natural.detach() + 0.001 * torch.randn_like(x_natural)
    for _ in range(perturb_steps):
        x_adv.requires_grad_()
        with torch.enable_grad():
            loss_kl = criterion_kl(F.log_softmax(model(x_adv), dim=1), F.softmax(model(x_natural), dim=1))
        grad = torch.autograd.grad(loss_kl, [x_adv])[0]
        x_adv = x_adv.detach() + step_size * torch.sign(grad.detach())
        x_adv = torch.min(torch.max(x_adv, x_natural - epsilon), x_natural + epsilon)
    x_adv = x_adv.detach()  # <- cause
    optimizer.zero_grad()  # <- cause
    logits = model(x_natural)  # <- cause
    loss_natural = F.cross_entropy(logits, y)
    loss_robust = criterion_kl(F.log_softmax(model(x_adv), dim=1), F.softmax(model(x_natural), dim=1)) / batch_size
    return loss_natural + beta * loss_robust


def train(model, train_loader, optimizer, epoch):
    model.train()
    for data, target in train_loader:
        loss = trades_loss(model, data, target, optimizer)
        loss.backward()
        optimizer.step()
    print(f"Train Epoch: {epoch} Loss: {loss.item():.6f}")


torch.manual_seed(4)
images = torch.rand(64, 1, 6, 6)
labels = (images.mean((1, 2, 3)) > 0.5).long()
loader = list(zip(images.split(8), labels.split(8), strict=True))
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(288, 2))
optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(1, 4):
    train(model, loader, optimizer, epoch)
