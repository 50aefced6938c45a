# The loss gets logits; softmax is there too, for confidence, entropy and calibration, computed from the same logits
# with their graph still attached, and only reported.
# source: gpleiss/temperature_scaling temperature_scaling.py (ECE from softmaxed logits beside cross-entropy on them)
import torch
from torch import nn

torch.manual_seed(211)
x = torch.randn(240, 5)
y = (x @ torch.randn(5, 4)).argmax(1)
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)


def calibration_error(probs, labels, n_bins=5):
    confidence, guess = probs.max(1)
    error = torch.zeros(())
    for low in torch.linspace(0, 1, n_bins + 1)[:-1]:
        inside = (confidence > low) & (confidence <= low + 1 / n_bins)
        if inside.any():
            gap = (guess == labels)[inside].float().mean() - confidence[inside].mean()
            error = error + gap.abs() * inside.float().mean()
    return error


for epoch in range(5):
    for batch in torch.randperm(240).split(30):
        logits = model(x[batch])
        probs = torch.softmax(logits, dim=1)
        entropy = -(probs * probs.log()).sum(1).mean()
        ece = calibration_error(probs, y[batch])
        loss = criterion(logits, y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{epoch} loss {loss.item():.3f} entropy {entropy.item():.3f} calibration error {ece.item():.3f}")
