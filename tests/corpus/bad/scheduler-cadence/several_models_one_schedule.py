# The optimizer takes one step per batch, while a loop over two heads' losses advances its schedule once per head.
# source: aimagelab/meshed-memory-transformer#71
# expect: scheduler-cadence
import torch
from torch import nn

torch.manual_seed(3)
trunk = nn.Linear(7, 24)
heads = nn.ModuleDict({"length": nn.Linear(24, 1), "kind": nn.Linear(24, 3)})
model = nn.ModuleList([trunk, heads])
optim = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
scheduler = torch.optim.lr_scheduler.StepLR(optim, step_size=6, gamma=0.5)
x = torch.randn(96, 7)
length, kind = x.norm(dim=1, keepdim=True), x[:, :3].argmax(1)


def train_xe(epoch):
    running = {"length": 0.0, "kind": 0.0}
    for rows in torch.randperm(96).split(12):
        h = torch.tanh(trunk(x[rows]))
        losses = {
            "length": nn.functional.mse_loss(heads["length"](h), length[rows]),
            "kind": nn.functional.cross_entropy(heads["kind"](h), kind[rows]),
        }
        optim.zero_grad()
        sum(losses.values()).backward()
        optim.step()
        for name, loss in losses.items():
            running[name] += loss.item()
            scheduler.step()  # <- scheduler-cadence, cause
    print(epoch, {k: round(v / 8, 4) for k, v in running.items()}, scheduler.get_last_lr())


for epoch in range(3):
    train_xe(epoch)
