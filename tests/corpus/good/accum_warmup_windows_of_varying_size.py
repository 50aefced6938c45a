# YOLOv5: the accumulation window grows from 1 to 4 batches during warm-up, windows run on over the end of an epoch
# because the counter is global, the loss is a sum over the batch, under a scaler with unscale_, clipping and an EMA.
# source: ultralytics/yolov5 train.py
from copy import deepcopy

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(71)
nbs, batch_size, nb, epochs = 64, 16, 7, 6
model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.SiLU(), nn.Linear(32, 4))
ema, updates = deepcopy(model).eval(), 0
decay_params = [p for p in model.parameters() if p.ndim > 1]
other_params = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.SGD(other_params, lr=5e-3, momentum=0.9, nesterov=True)
optimizer.add_param_group({"params": decay_params, "weight_decay": 5e-4})
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda e: (1 - e / epochs) * 0.99 + 0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
nw, last_opt_step = 14, -1

optimizer.zero_grad()
for epoch in range(epochs):
    model.train()
    mloss = 0.0
    for i in range(nb):
        ni = i + nb * epoch
        accumulate = nbs // batch_size
        if ni <= nw:
            accumulate = max(1, np.interp(ni, [0, nw], [1, nbs / batch_size]).round())
            for x in optimizer.param_groups:
                x["lr"] = np.interp(ni, [0, nw], [0.0, x["initial_lr"]])
        imgs = torch.randn(batch_size, 8)
        with torch.amp.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(imgs), imgs[:, :4].argmax(1)) * batch_size
        scaler.scale(loss).backward()
        if ni - last_opt_step >= accumulate:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=10.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            updates += 1
            for k, v in ema.state_dict().items():
                if v.dtype.is_floating_point:
                    v.lerp_(model.state_dict()[k].detach(), 1 / (updates + 1))
            last_opt_step = ni
        mloss = (mloss * i + loss.item() / batch_size) / (i + 1)
    scheduler.step()
    print(epoch, f"{mloss:.4f} after {updates} updates")
