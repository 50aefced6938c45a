# A beginner's loop with a float16 autocast block that covers forward, loss and the scaled backward.
# source: https://theneuralbase.com/pytorch/learn/beginner/forward-pass-loss-backward-step/
# expect: backward-inside-autocast
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(96, 6)
y = x.pow(2).sum(1, keepdim=True) / 6
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

for epoch in range(3):
    for i in range(0, 96, 24):
        optimizer.zero_grad()
        with torch.autocast(device_type="cpu", dtype=torch.float16):
            output = model(x[i : i + 24])
            loss = criterion(output, y[i : i + 24])
            scaler.scale(loss).backward()  # <- backward-inside-autocast, cause
        scaler.step(optimizer)
        scaler.update()
    print(f"epoch {epoch} loss {loss.item():.4f}")
