# TRADES: the model is put in eval mode to craft the example (by torch.autograd.grad, several times), back in train
# mode for the loss, in every batch.
# source: yaodongyu/TRADES trades.py
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


def trades_loss(model, x_natural, y, optimizer, step_size=0.02, epsilon=0.06, perturb_steps=4, beta=3.0):
    criterion_kl = nn.KLDivLoss(reduction="sum")
    model.eval()
    x_adv = x_natural.detach() + 0.001 * torch.randn(x_natural.shape)
    for _ in range(perturb_steps):
        x_adv.requires_grad_()
        with torch.enable_grad():
            loss_kl = criterion_kl(F.log_softmax(model(x_adv), dim=1), F.softmax(model(x_natural), dim=1))
        grad = torch.autograd.grad(loss_kl, [x_adv])[0]
        x_adv = x_adv.detach() + step_size * torch.sign(grad.detach())
        x_adv = torch.min(torch.max(x_adv, x_natural - epsilon), x_natural + epsilon)
    model.train()
    x_adv = x_adv.clamp(0.0, 1.0).detach()
    optimizer.zero_grad()
    logits = model(x_natural)
    loss_natural = F.cross_entropy(logits, y)
    loss_robust = criterion_kl(F.log_softmax(model(x_adv), dim=1), F.softmax(logits, dim=1)) / len(y)
    return loss_natural + beta * loss_robust


def train(model, loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = trades_loss(model, data, target, optimizer)
        loss.backward()
        optimizer.step()
        if batch_idx == 0:
            print(f"Train Epoch: {epoch} Loss: {loss.item():.6f}")


if __name__ == "__main__":
    torch.manual_seed(18)
    x = torch.rand(160, 6)
    pairs = list(zip(x.split(20), (x[:, 0] > x[:, 1]).long().split(20), strict=True))
    net = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
    sgd = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(1, 5):
        train(net, pairs, sgd, epoch)
