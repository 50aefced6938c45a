# Quantization-aware training: the range is initialized by making a new Parameter, after the optimizer was built.
# source: openvinotoolkit/nncf#327
# expect: optimizer-holds-stale-params
import torch
from torch import nn


class SymmetricQuantizer(nn.Module):
    def __init__(self, levels=15):
        super().__init__()
        self.levels, self.scale = levels, nn.Parameter(torch.ones(1))

    def forward(self, x):
        step = self.scale.abs() / self.levels
        q = (x / step).clamp(-self.levels, self.levels)
        return (q + (q.round() - q).detach()) * step

    def apply_minmax_init(self, min_values, max_values):
        self.scale = nn.Parameter(torch.max(min_values.abs(), max_values.abs()).view(1))  # <- cause


class QuantizedMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_in, self.fc1 = SymmetricQuantizer(), nn.Linear(8, 24)
        self.q_hidden, self.fc2 = SymmetricQuantizer(), nn.Linear(24, 1)

    def forward(self, x):
        hidden = torch.relu(self.fc1(self.q_in(x)))
        return self.fc2(self.q_hidden(hidden)).squeeze(1)


class QuantizationController:
    def __init__(self, model):
        self.model = model

    @torch.no_grad()
    def initialize_quantizer_params(self, samples):
        self.model.q_in.apply_minmax_init(samples.min(), samples.max())
        hidden = torch.relu(self.model.fc1(samples))
        self.model.q_hidden.apply_minmax_init(hidden.min(), hidden.max())


def main():
    torch.manual_seed(9)
    inputs = torch.randn(96, 8)
    targets = inputs[:, 0] * 2 + inputs[:, 1].abs()
    model = QuantizedMLP()
    compression_ctrl = QuantizationController(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)  # <- optimizer-holds-stale-params
    compression_ctrl.initialize_quantizer_params(inputs[:32])
    for epoch in range(4):
        for x, y in zip(inputs.split(24), targets.split(24), strict=True):
            loss = nn.functional.mse_loss(model(x), y)
            model.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f} scale {model.q_in.scale.item():.3f}")


main()
