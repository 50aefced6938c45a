# Mixed precision with accumulation: gradients stay scaled over the window, are unscaled once at its end, clipped, then
# stepped; the scale is updated once a window.
# source: docs.pytorch.org/docs/stable/notes/amp_examples.html (Gradient accumulation, Gradient clipping)
import torch
from torch import autocast, nn
from torch.amp import GradScaler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(76)
x = torch.randn(192, 8)
data = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(8, 48), nn.GELU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = GradScaler("cpu", init_scale=512.0, growth_interval=5)
iters_to_accumulate, max_norm = 3, 1.0

for epoch in range(4):
    for i, (inp, target) in enumerate(data):
        with autocast(device_type="cpu", dtype=torch.float16):
            output = model(inp)
            loss = nn.functional.cross_entropy(output, target)
            loss = loss / iters_to_accumulate
        scaler.scale(loss).backward()
        if (i + 1) % iters_to_accumulate == 0:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    print(epoch, f"{loss.item() * iters_to_accumulate:.4f}", scaler.get_scale())
