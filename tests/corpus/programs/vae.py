# A variational autoencoder with a convolutional encoder, the KL term warmed up, gradients accumulated over two batches,
# samples drawn after every epoch.
# source: pytorch/examples vae/main.py
import argparse
import hashlib
import sys
import tempfile
from pathlib import Path

import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F


def blobs(n):
    grid = torch.stack(torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij"))
    centre = torch.rand(n, 2, 1, 1) * 5 + 1.5
    width = torch.rand(n, 1, 1) + 0.7
    return torch.exp(-((grid - centre) ** 2).sum(1) / (2 * width**2)).unsqueeze(1)


class VAE(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 32), nn.ReLU()
        )
        self.fc_mu, self.fc_logvar = nn.Linear(32, latent), nn.Linear(32, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, 32), nn.ReLU(), nn.Linear(32, 128), nn.ReLU(), nn.Unflatten(1, (8, 4, 4))
        )
        self.last = nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1)

    def encode(self, x):
        h = self.encoder(x)
        return self.fc_mu(h), self.fc_logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return self.last(self.decoder(z))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar, beta):
    bce = F.binary_cross_entropy_with_logits(recon_x, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + beta * kld


def train(model, loader, optimizer, epoch, args):
    model.train()
    train_loss = 0
    beta = min(1.0, epoch / args.warmup)
    optimizer.zero_grad()
    for batch_idx, (data,) in enumerate(loader):
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar, beta) / (args.batch_size * args.accumulate)
        loss.backward()
        train_loss += loss.item() * args.batch_size * args.accumulate
        if (batch_idx + 1) % args.accumulate == 0 or batch_idx + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    return train_loss / len(loader.dataset)


@torch.no_grad()
def test(model, loader):
    model.eval()
    total = 0.0
    for (data,) in loader:
        recon, mu, logvar = model(data)
        total += loss_function(recon, data, mu, logvar, 1.0).item()
    return total / len(loader.dataset)


def run(args):
    torch.manual_seed(args.seed)
    train_loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(blobs(448)), batch_size=args.batch_size, shuffle=True
    )
    test_loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(blobs(96)), batch_size=48)
    model = VAE(args.latent)
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(1, args.epochs + 1):
            train_loss = train(model, train_loader, optimizer, epoch, args)
            test_loss = test(model, test_loader)
            with torch.no_grad():
                sample = torch.sigmoid(model.decode(torch.randn(16, args.latent)))
            torch.save({"epoch": epoch, "sample": sample, "model": model.state_dict()}, Path(folder, f"{epoch}.pt"))
            print(f"====> Epoch {epoch}: train {train_loss:.3f} test {test_loss:.3f} sample mean {sample.mean():.3f}")
        state = torch.load(Path(folder, f"{args.epochs}.pt"))["model"]
    h = hashlib.sha256()
    for key in sorted(state):
        h.update(state[key].numpy().tobytes())
    print(f"digest: {h.hexdigest()}")
    return 0


if __name__ == "__main__":
    cli = argparse.ArgumentParser(description="VAE on blobs")
    cli.add_argument("--batch-size", type=int, default=32)
    cli.add_argument("--accumulate", type=int, default=2)
    cli.add_argument("--epochs", type=int, default=8)
    cli.add_argument("--warmup", type=int, default=4)
    cli.add_argument("--latent", type=int, default=4)
    cli.add_argument("--lr", type=float, default=5e-3)
    cli.add_argument("--seed", type=int, default=1)
    sys.exit(run(cli.parse_args()))
