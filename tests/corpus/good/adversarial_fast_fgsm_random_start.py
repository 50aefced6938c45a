# Fast adversarial training: the attack's backward also fills the model's gradients; the zero_grad() that wipes them
# stands between the two backwards. The scheduler steps once a batch.
# source: locuslab/fast_adversarial CIFAR10/train_fgsm.py
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
model = nn.Sequential(nn.Flatten(), nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
model.train()
train_x = torch.rand(180, 1, 4, 4)
train_y = (train_x.flatten(1)[:, :3]).argmax(1)
opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, weight_decay=5e-4)
criterion = nn.CrossEntropyLoss()
epochs, epsilon, alpha = 4, 8 / 255, 10 / 255
lr_steps = epochs * 6
scheduler = torch.optim.lr_scheduler.CyclicLR(
    opt, base_lr=0.0, max_lr=0.2, step_size_up=lr_steps // 2, step_size_down=lr_steps // 2
)
for epoch in range(epochs):
    train_loss = train_acc = train_n = 0
    for i in range(6):
        x, y = train_x[i * 30 : i * 30 + 30], train_y[i * 30 : i * 30 + 30]
        delta = torch.zeros_like(x).uniform_(-epsilon, epsilon)
        delta.requires_grad = True
        output = model(x + delta)
        loss = F.cross_entropy(output, y)
        loss.backward()
        grad = delta.grad.detach()
        delta.data = torch.clamp(delta + alpha * torch.sign(grad), -epsilon, epsilon)
        delta.data = torch.max(torch.min(1 - x, delta.data), 0 - x)
        delta = delta.detach()
        output = model(x + delta)
        loss = criterion(output, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        train_loss += loss.item() * y.size(0)
        train_acc += (output.max(1)[1] == y).sum().item()
        train_n += y.size(0)
        scheduler.step()
    print(epoch, f"{scheduler.get_last_lr()[0]:.4f} {train_loss / train_n:.4f} {train_acc / train_n:.4f}")
