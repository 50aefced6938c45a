# A whole train step decorated with torch.autocast, so that backward and the update run under it as well.
# source: pytorch/pytorch#175241
# expect: backward-inside-autocast
import torch
import torch.nn.functional as F
from torch import nn, optim

torch.manual_seed(2)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.mu, self.logvar = nn.Linear(20, 32), nn.Linear(32, 4), nn.Linear(32, 4)
        self.dec = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 20))

    def forward(self, x):
        h = F.relu(self.fc1(x))
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + (0.5 * logvar).exp() * torch.randn_like(mu)
        return self.dec(z), mu, logvar


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)


@torch.autocast("cpu", dtype=torch.bfloat16)  # <- cause
def train_step(data):
    optimizer.zero_grad()
    recon, mu, logvar = model(data)
    bce = F.binary_cross_entropy_with_logits(recon.float(), data, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    loss = (bce + kld) / len(data)
    loss.backward()  # <- backward-inside-autocast
    optimizer.step()
    return loss.item()


data = (torch.rand(128, 20) > 0.7).float()
for epoch in range(2):
    total = sum(train_step(batch) for batch in data.split(16))
    print(f"Epoch {epoch} average loss {total / 8:.4f}")
