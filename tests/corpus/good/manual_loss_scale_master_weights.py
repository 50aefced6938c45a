# Half precision by hand: a float16 model, float32 master weights in the optimizer, the loss multiplied by a constant,
# gradients copied over and divided, steps with an overflow left out, and the new weights copied back.
# source: suvojit-0x55aa/mixed-precision-pytorch train.py
import torch
import torch.nn as nn
from torch.nn.parameter import Parameter

torch.manual_seed(80)
SCALE = 128.0
model = nn.Sequential(nn.Linear(10, 40), nn.Tanh(), nn.Linear(40, 1)).half()
model_params = [p for p in model.parameters() if p.requires_grad]
master_params = [Parameter(p.clone().float().detach()) for p in model_params]
optimizer = torch.optim.SGD(master_params, lr=0.05, momentum=0.9)


def model_grads_to_master_grads():
    for model_p, master in zip(model_params, master_params, strict=True):
        if master.grad is None:
            master.grad = torch.empty_like(master)
        master.grad.data.copy_(model_p.grad.data)


for step in range(40):
    inputs = torch.randn(64, 10).half()
    targets = inputs[:, :3].sum(1, keepdim=True).sin()
    model.zero_grad()
    loss = nn.functional.mse_loss(model(inputs).float(), targets.float())
    (loss * SCALE).backward()
    model_grads_to_master_grads()
    for param in master_params:
        param.grad.data.mul_(1.0 / SCALE)
    if all(torch.isfinite(param.grad).all() for param in master_params):
        optimizer.step()
        for model_p, master in zip(model_params, master_params, strict=True):
            model_p.data.copy_(master.data)
    if step % 13 == 0:
        print(step, loss.item())
