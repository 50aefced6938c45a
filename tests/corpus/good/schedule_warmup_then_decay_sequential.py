# Warm-up and decay chained in one SequentialLR that steps once an epoch; the model's moving average follows every
# few batches.
# source: pytorch/vision references/classification/train.py
import torch
from torch import nn, optim
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(82)
args = {"epochs": 8, "lr": 0.2, "lr_warmup_epochs": 3, "lr_min": 1e-3, "model_ema_steps": 4}
model = nn.Sequential(nn.Linear(20, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Linear(40, 3))
optimizer = optim.SGD(model.parameters(), lr=args["lr"], momentum=0.9, weight_decay=1e-4)
main_lr_scheduler = CosineAnnealingLR(
    optimizer, T_max=args["epochs"] - args["lr_warmup_epochs"], eta_min=args["lr_min"]
)
warmup_lr_scheduler = LinearLR(optimizer, start_factor=0.01, total_iters=args["lr_warmup_epochs"])
lr_scheduler = SequentialLR(
    optimizer, schedulers=[warmup_lr_scheduler, main_lr_scheduler], milestones=[args["lr_warmup_epochs"]]
)
model_ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
x = torch.randn(300, 20)
y = (x[:, :10].sum(1) > x[:, 10:].sum(1)).long()

for epoch in range(args["epochs"]):
    model.train()
    for i, rows in enumerate(torch.randperm(300).split(50)):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows], label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % args["model_ema_steps"] == 0:
            model_ema.update_parameters(model)
            if epoch < args["lr_warmup_epochs"]:
                model_ema.n_averaged.fill_(0)
    print(epoch, f"lr {optimizer.param_groups[0]['lr']:.4f} loss {loss.item():.4f}")
    lr_scheduler.step()
