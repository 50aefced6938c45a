# Cross-validation: every fold trains a model of its own, so model, optimizer and scheduler are made anew inside the
# loop.
# source: keras-team/keras#454 (state that leaks from fold to fold)
import torch
from torch import nn, optim

torch.manual_seed(207)
x = torch.randn(120, 6)
y = (x[:, :1] + x[:, 1:2].abs() + 0.1 * torch.randn(120, 1) > 0.5).float()


def build():
    return nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.SiLU(), nn.Dropout(0.1), nn.Linear(24, 1))


scores = []
for fold, held_out in enumerate(torch.randperm(120).chunk(4)):
    keep = torch.ones(120, dtype=torch.bool)
    keep[held_out] = False
    model = build()
    optimizer = optim.AdamW(model.parameters(), lr=2e-2)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
    for _epoch in range(12):
        model.train()
        for batch in keep.nonzero().flatten()[torch.randperm(90)].split(30):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
        scheduler.step()
    model.eval()
    with torch.inference_mode():
        right = ((model(x[held_out]) > 0).float() == y[held_out]).float().mean().item()
    scores.append(right)
    print(f"fold {fold} loss {loss.item():.3f} accuracy {right:.3f}")
print("mean", sum(scores) / len(scores))
