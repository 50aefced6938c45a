# Prediction with uncertainty after every epoch: the whole network goes into eval mode, then only its dropout layers
# back into train mode, and several passes are averaged.
# source: lightning-uq-box/lightning-uq-box#173, SeldonIO/alibi-detect#232
import torch
from torch import nn

torch.manual_seed(269)
x = torch.rand(200, 1) * 6 - 3
y = x.sin() + 0.1 * torch.randn(200, 1)
net = nn.Sequential(
    nn.Linear(1, 48), nn.BatchNorm1d(48), nn.Tanh(), nn.Dropout(0.1), nn.Linear(48, 48), nn.Tanh(), nn.Dropout(0.1),
    nn.Linear(48, 1)
)  # fmt: skip
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)


@torch.inference_mode()
def predict(inputs, passes=20):
    net.eval()
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    drawn = torch.stack([net(inputs) for _ in range(passes)])
    return drawn.mean(0), drawn.std(0)


for epoch in range(6):
    net.train()
    for rows in torch.randperm(160).split(20):
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    mean, doubt = predict(x[160:])
    error = (mean - y[160:]).square().mean().item()
    print(f"{epoch} train {loss.item():.4f} test {error:.4f} doubt {doubt.mean().item():.4f}")
