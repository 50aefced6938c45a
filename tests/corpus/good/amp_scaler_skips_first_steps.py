# The scaler starts too high, so its first steps are skipped; the scheduler only steps when the optimizer did, which
# the scale tells.
# source: Lightning-AI/pytorch-lightning#18828, discuss.pytorch.org/t/cyclic-learning-rate-how-to-use/53796/2
import torch
import torch.nn as nn

torch.manual_seed(77)
net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=20)
scaler = torch.GradScaler("cpu", init_scale=2.0**24)
skipped = 0

for step in range(40):
    x = torch.randn(32, 16)
    y = x[:, :4].sum(1, keepdim=True)
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.float16):
        out = net(x)
    loss = nn.functional.mse_loss(out.float(), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scale = scaler.get_scale()
    scaler.update()
    skip_lr_sched = scale > scaler.get_scale()
    if skip_lr_sched:
        skipped += 1
    else:
        scheduler.step()
    if step % 13 == 0:
        print(f"{step} loss {loss.item():.4f} scale {scaler.get_scale():.0f} skipped {skipped}")
