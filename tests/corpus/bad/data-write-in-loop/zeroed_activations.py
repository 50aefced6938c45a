# A sparse autoencoder blanks small activations through .data before the backward pass, which then uses the new values.
# source: pytorch/pytorch#6990
# expect: data-write-in-loop
# severity: hint (some know what they do; detach() would have raised here)
import torch
from torch import nn, optim

torch.manual_seed(0)


class SparseAutoencoder(nn.Module):
    def __init__(self, n_in=12, n_hidden=24):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(n_in, n_hidden), nn.Linear(n_hidden, n_in)

    def forward(self, x):
        code = self.encoder(x).sigmoid()
        return code, self.decoder(code)


model = SparseAutoencoder()
optimizer = optim.Adam(model.parameters(), lr=5e-3)
patches = torch.randn(96, 4) @ torch.randn(4, 12)
for epoch in range(4):
    for x in patches.split(24):
        code, reconstruction = model(x)
        loss = (reconstruction - x).square().mean() + 1e-3 * code.abs().sum(1).mean()
        code.data[code < 0.2] = 0.0  # <- data-write-in-loop, cause
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f} active {(code > 0).float().mean().item():.2f}")
