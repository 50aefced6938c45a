# Mean teacher: the teacher is an average of the student's weights, runs in train mode too (dropout is its noise), its
# parameters are detached in place, and its output is a target for a consistency cost.
# source: CuriousAI/mean-teacher pytorch/main.py
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(52)
NO_LABEL = -1


def create_model(ema=False):
    model = nn.Sequential(nn.Linear(2, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
    if ema:
        for param in model.parameters():
            param.detach_()
    return model


def update_ema_variables(model, ema_model, alpha, global_step):
    alpha = min(1 - 1 / (global_step + 1), alpha)
    for ema_param, param in zip(ema_model.parameters(), model.parameters(), strict=True):
        ema_param.data.mul_(alpha).add_(param.data, alpha=1 - alpha)


model, ema_model = create_model(), create_model(ema=True)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True)
class_criterion = nn.CrossEntropyLoss(reduction="sum", ignore_index=NO_LABEL)
points = torch.randn(400, 2)
labels = (points.norm(dim=1) > 1.2).long()
labels[torch.rand(400) < 0.5] = NO_LABEL
global_step = 0

for epoch in range(6):
    model.train()
    ema_model.train()
    for rows in torch.randperm(400).split(50):
        x, target = points[rows], labels[rows]
        ema_logit = ema_model(x + 0.1 * torch.randn_like(x))
        class_logit = model(x + 0.1 * torch.randn_like(x))
        ema_logit = ema_logit.detach().requires_grad_(False)
        class_loss = class_criterion(class_logit, target) / len(rows)
        weight = min(1.0, epoch / 5)
        consistency_loss = weight * F.mse_loss(class_logit.softmax(1), ema_logit.softmax(1))
        loss = class_loss + consistency_loss
        assert not torch.isnan(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        global_step += 1
        update_ema_variables(model, ema_model, 0.95, global_step)
    print(epoch, f"class {class_loss.item():.4f} consistency {consistency_loss.item():.5f}")
