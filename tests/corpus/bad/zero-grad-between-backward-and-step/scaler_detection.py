# A detection head with float16 autocast and a GradScaler, where zero_grad sits between backward and scaler.step.
# source: IDEA-Research/DN-DETR#18
# expect: zero-grad-between-backward-and-step
import torch
from torch import nn

torch.manual_seed(6)
boxes = torch.rand(48, 4)
feats = boxes @ torch.randn(4, 24) + 0.05 * torch.randn(48, 24)

model = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 4), nn.Sigmoid())
criterion = nn.L1Loss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)


def train_one_epoch(data_loader, max_norm=0.1):
    for samples, targets in data_loader:
        with torch.autocast("cpu", dtype=torch.float16):
            outputs = model(samples)
        loss = criterion(outputs.float(), targets)

        scaler.scale(loss).backward()
        optimizer.zero_grad(set_to_none=False)  # <- zero-grad-between-backward-and-step, cause
        if max_norm > 0:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
    return loss.item()


loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(feats, boxes), batch_size=12)
for epoch in range(3):
    print(epoch, train_one_epoch(loader))
