# Uncertainty by dropout: the model is in eval(), only its nn.Dropout layers are put back to train() for the sampling.
# source: none (a common pattern, written small)
import torch
from torch import nn

torch.manual_seed(9)
model = nn.Sequential(nn.Linear(5, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
held_out = torch.randn(40, 5)


@torch.no_grad()
def uncertainty(x, samples=8):
    model.eval()
    for layer in model.modules():
        if isinstance(layer, nn.Dropout):
            layer.train()
    return torch.stack([model(x) for _ in range(samples)]).std(0).mean().item()


for epoch in range(4):
    model.train()
    for x in torch.randn(10, 16, 5):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
        optimizer.step()
    print(epoch, uncertainty(held_out))
