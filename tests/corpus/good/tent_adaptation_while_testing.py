# Test-time adaptation: the model is put in train mode to be *tested*, everything but BatchNorm's scale and shift is
# frozen, and each test batch is predicted and learnt from in one go, without labels.
# source: DequanWang/tent tent.py
import torch
import torch.nn as nn

torch.manual_seed(111)


def softmax_entropy(x):
    return -(x.softmax(1) * x.log_softmax(1)).sum(1)


class Tent(nn.Module):
    def __init__(self, model, optimizer, steps=1):
        super().__init__()
        self.model, self.optimizer, self.steps = model, optimizer, steps

    def forward(self, x):
        for _ in range(self.steps):
            outputs = forward_and_adapt(x, self.model, self.optimizer)
        return outputs


@torch.enable_grad()
def forward_and_adapt(x, model, optimizer):
    outputs = model(x)
    loss = softmax_entropy(outputs).mean(0)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return outputs


def configure_model(model):
    model.train()
    model.requires_grad_(False)
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.requires_grad_(True)
            m.track_running_stats = False
            m.running_mean, m.running_var = None, None
    return model


model = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    x = torch.randn(64, 6)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), x[:, :3].argmax(1)).backward()
    optimizer.step()

test_x = torch.randn(800, 6)
test_y, shifted = test_x[:, :3].argmax(1), test_x + torch.tensor([2.0, -2.0, 0.5, 1.0, 0.0, -1.0])
model.eval()
with torch.no_grad():
    print("source", (model(shifted).argmax(1) == test_y).float().mean().item())
model = configure_model(model)
params = [p for m in model.modules() if isinstance(m, nn.BatchNorm1d) for p in (m.weight, m.bias)]
tented = Tent(model, torch.optim.Adam(params, lr=1e-3))
right = sum((tented(x).argmax(1) == y).sum().item() for x, y in zip(shifted.split(40), test_y.split(40), strict=True))
print("adapted", right / 800)
