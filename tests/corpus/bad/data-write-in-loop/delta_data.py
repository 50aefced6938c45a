# Robust training where the PGD steps write to delta.data; everything else about the attack is in order.
# source: locuslab/fast_adversarial#26
# expect: data-write-in-loop
# severity: hint (the perturbation is a leaf that is only stepped by hand)
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
epsilon, alpha, attack_iters = 0.15, 0.05, 4
digits = torch.rand(80, 1, 6, 6)
labels = (digits.mean((1, 2, 3)) * 40).long() % 3
train_loader = DataLoader(TensorDataset(digits, labels), batch_size=16, shuffle=True)

model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 3))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(2):
    train_loss, train_acc, train_n = 0.0, 0, 0
    for X, y in train_loader:
        delta = torch.zeros_like(X, requires_grad=True)
        for _ in range(attack_iters):
            loss = criterion(model(X + delta), y)
            (grad,) = torch.autograd.grad(loss, delta)
            delta.data = (delta + alpha * grad.sign()).detach().clamp(-epsilon, epsilon)  # <- data-write-in-loop, cause
        output = model((X + delta.detach()).clamp(0, 1))
        loss = F.cross_entropy(output, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        train_loss += loss.item() * y.size(0)
        train_acc += (output.argmax(1) == y).sum().item()
        train_n += y.size(0)
    print(f"{epoch}\t{train_loss / train_n:.4f}\t{train_acc / train_n:.4f}")
