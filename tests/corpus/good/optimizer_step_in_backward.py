# Each parameter has an optimizer of its own that steps and clears as soon as its gradient is there, inside backward:
# no step() and no zero_grad() in the loop.
# source: pytorch/tutorials intermediate_source/optimizer_step_in_backward_tutorial.py
import torch
from torch import nn

torch.manual_seed(33)
layer = nn.TransformerEncoderLayer(d_model=16, nhead=2, dim_feedforward=32, dropout=0.0, batch_first=True)
model = nn.Sequential(nn.Linear(3, 16), layer, nn.Linear(16, 1))

optimizer_dict = {p: torch.optim.Adam([p], lr=3e-3, foreach=False) for p in model.parameters()}


def optimizer_hook(parameter) -> None:
    optimizer_dict[parameter].step()
    optimizer_dict[parameter].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(optimizer_hook)


def train(model):
    for i in range(40):
        fake_image = torch.rand(16, 5, 3)
        loss = (model(fake_image).squeeze(-1) - fake_image.sum(-1)).pow(2).mean()
        loss.backward()
        if i % 13 == 0:
            print(i, loss.item())


train(model)
