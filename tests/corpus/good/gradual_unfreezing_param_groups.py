# Gradual unfreezing: the optimizer starts with the head, and blocks join it by add_param_group() as epochs pass.
# source: docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.add_param_group.html
# and codegenes.net/blog/gradual-unfreezing-pytorch
import torch
import torch.nn as nn

torch.manual_seed(48)
blocks = nn.ModuleList([nn.Linear(7, 20), nn.Linear(20, 20), nn.Linear(20, 3)])


def forward(x):
    for block in blocks[:-1]:
        x = torch.tanh(block(x))
    return blocks[-1](x)


for block in blocks[:-1]:
    block.requires_grad_(False)
optimizer = torch.optim.AdamW([{"params": blocks[-1].parameters(), "name": "head"}], lr=1e-2)
unfreeze_at = {2: 1, 4: 0}
x = torch.randn(240, 7)
y = (x[:, :3] * x[:, 3:6]).argmax(1)

for epoch in range(8):
    if epoch in unfreeze_at:
        block = blocks[unfreeze_at[epoch]]
        for p in block.parameters():
            p.requires_grad = True
        optimizer.add_param_group(
            {"params": block.parameters(), "lr": 1e-2 / epoch, "name": f"block{unfreeze_at[epoch]}"}
        )
    for idx in torch.randperm(240).split(48):
        loss = nn.functional.cross_entropy(forward(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, f"{loss.item():.3f}", [g["name"] for g in optimizer.param_groups])
