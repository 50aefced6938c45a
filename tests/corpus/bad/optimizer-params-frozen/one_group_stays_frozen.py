# The second stage gives the encoder a group of its own, but sets requires_grad on modules: its parameters stay frozen.
# source: CSCYQJ/MICCAI23-ProtoContra-SFDA#18, with both parts in one optimizer
# expect: optimizer-params-frozen
# severity: hint (a group that is frozen does no harm)
# missed: a group that is frozen does no harm
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU())
head = nn.Linear(16, 3)
x = torch.randn(96, 8)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()


def run(optimizer, epochs):
    for _ in range(epochs):
        for index in torch.randperm(96).split(24):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(head(encoder(x[index])), y[index])
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.4f}")


for param in encoder.parameters():
    param.requires_grad = False
run(torch.optim.AdamW(head.parameters(), lr=1e-2), 4)
for module in encoder.modules():
    module.requires_grad = True  # <- cause
groups = [{"params": encoder.parameters(), "lr": 1e-3}, {"params": head.parameters()}]
run(torch.optim.AdamW(groups, lr=2e-3), 4)  # <- optimizer-params-frozen
