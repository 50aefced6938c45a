# Robust training with PGD: zero_grad() stands before the attack, whose passes fill the weights' .grad as well.
# source: P2333/Bag-of-Tricks-for-AT#8
# expect: attack-gradients-in-step
import torch
import torch.nn as nn
import torch.nn.functional as F


def clamp(x, lower, upper):
    return torch.max(torch.min(x, upper), lower)


def attack_pgd(model, x, y, epsilon, alpha, attack_iters):
    delta = torch.zeros_like(x).uniform_(-epsilon, epsilon)
    delta = clamp(delta, 0 - x, 1 - x).requires_grad_(True)
    for _ in range(attack_iters):
        loss = F.cross_entropy(model(x + delta), y)
        loss.backward()  # <- cause
        grad = delta.grad.detach()
        with torch.no_grad():
            delta.copy_(clamp((delta + alpha * grad.sign()).clamp(-epsilon, epsilon), 0 - x, 1 - x))
        delta.grad.zero_()
    return delta.detach()


def main(epochs=3, epsilon=0.1, alpha=0.03, attack_iters=4):
    torch.manual_seed(0)
    x_train = torch.rand(64, 1, 6, 6)
    y_train = (x_train[:, 0, :3].mean((1, 2)) > x_train[:, 0, 3:].mean((1, 2))).long()
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(128, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    for epoch in range(epochs):
        train_loss = train_acc = 0.0
        for idx in torch.randperm(64).split(16):
            x, y = x_train[idx], y_train[idx]
            opt.zero_grad()  # <- cause
            delta = attack_pgd(model, x, y, epsilon, alpha, attack_iters)
            output = model((x + delta).clamp(0, 1))
            loss = F.cross_entropy(output, y)
            loss.backward()  # <- cause
            opt.step()  # <- attack-gradients-in-step
            train_loss += loss.item() * len(y)
            train_acc += (output.argmax(1) == y).sum().item()
        print(f"{epoch} \t {train_loss / 64:.4f} \t {train_acc / 64:.4f}")


main()
