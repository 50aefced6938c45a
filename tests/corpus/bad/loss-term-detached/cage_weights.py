# Cage-based deformation: a helper detaches the interpolation weights, so the penalty on negative weights is a constant.
# source: yifita/deep_cage#16
# expect: loss-term-detached
# missed: the terms are summed from a dictionary
import torch
from torch import nn

torch.manual_seed(6)


def mean_value_weights(points, cage):
    weights = 1.0 / (torch.cdist(points, cage) + 1e-2)
    weights = weights - 0.6 * weights.mean(-1, keepdim=True)
    return weights / weights.sum(-1, keepdim=True)


def deform_with_cage(cage, cage_deformed, shape):
    weights = mean_value_weights(shape, cage)
    weights = weights.detach()  # <- cause
    return {"deformed": weights @ cage_deformed, "weight": weights}


class CageNet(nn.Module):
    def __init__(self, cage_points=6):
        super().__init__()
        self.register_buffer("template", 2 * torch.nn.functional.normalize(torch.randn(cage_points, 3), dim=-1))
        self.encoder = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 16))
        self.cage_decoder = nn.Linear(16, cage_points * 3)
        self.deform_decoder = nn.Linear(32, cage_points * 3)

    def forward(self, source, target):
        s_code, t_code = self.encoder(source).amax(1), self.encoder(target).amax(1)
        cage = self.template + 0.1 * self.cage_decoder(s_code).view(len(source), -1, 3)
        offset = self.deform_decoder(torch.cat([s_code, t_code], dim=1)).view_as(cage)
        return deform_with_cage(cage, cage + offset, source)


class DeformLoss:
    def __init__(self, mvc_weight=1.0):
        self.mvc_weight = mvc_weight

    def __call__(self, outputs, target):
        loss = {"CD": torch.cdist(outputs["deformed"], target).amin(-1).mean()}
        loss["WREG"] = outputs["weight"].clamp(max=0).square().sum(-1).mean() * self.mvc_weight
        return loss


net, all_losses = CageNet(), DeformLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for t in range(15):
    source = torch.randn(8, 20, 3)
    target = source * torch.tensor([1.0, 0.5, 1.5])
    losses = all_losses(net(source, target), target)
    optimizer.zero_grad()
    sum(losses.values()).backward()  # <- loss-term-detached
    optimizer.step()
    if t % 5 == 0:
        print(t, {key: f"{value.item():.4f}" for key, value in losses.items()})
