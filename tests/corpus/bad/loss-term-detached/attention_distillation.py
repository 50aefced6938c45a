# Neural attention distillation: the activation of the student is detached too, so the attention loss trains nothing.
# source: bboylyg/NAD#8
# expect: loss-term-detached
import torch
import torch.nn as nn
import torch.nn.functional as F


class WideNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.block1 = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.block2 = nn.Sequential(nn.Conv2d(8, 12, 3, stride=2, padding=1), nn.ReLU())
        self.fc = nn.Linear(12, 4)

    def forward(self, x):
        activation1 = self.block1(x)
        activation2 = self.block2(activation1)
        return activation2, self.fc(activation2.mean((2, 3)))


class AT(nn.Module):
    def attention_map(self, fm, eps=1e-6):
        am = fm.abs().pow(2).sum(dim=1, keepdim=True)
        return am / (am.flatten(1).norm(dim=1).view(-1, 1, 1, 1) + eps)

    def forward(self, fm_s, fm_t):
        return F.mse_loss(self.attention_map(fm_s), self.attention_map(fm_t))


def train_step(train_loader, nets, optimizer, criterion_cls, criterion_at, beta=500.0):
    student, teacher = nets["student"], nets["teacher"]
    student.train()
    teacher.eval()
    for img, target in train_loader:
        activation_s, output_s = student(img)
        with torch.no_grad():
            activation_t, _ = teacher(img)
        cls_loss = criterion_cls(output_s, target)
        at_loss = criterion_at(activation_s.detach(), activation_t.detach()) * beta  # <- cause
        loss = at_loss + cls_loss
        optimizer.zero_grad()
        loss.backward()  # <- loss-term-detached
        optimizer.step()
    print(f"cls {cls_loss.item():.4f} at {at_loss.item():.4f}")


torch.manual_seed(0)
nets = {"student": WideNet(), "teacher": WideNet()}
optimizer = torch.optim.SGD(nets["student"].parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4, nesterov=True)
images = torch.rand(40, 3, 8, 8)
labels = images.mean((2, 3)).argmax(1)
loader = list(zip(images.split(8), labels.split(8), strict=True))
for _ in range(3):
    train_step(loader, nets, optimizer, nn.CrossEntropyLoss(), AT())
