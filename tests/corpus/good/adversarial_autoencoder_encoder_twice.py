# An adversarial autoencoder: the encoder is in two optimizers, one for the reconstruction and one for fooling the
# discriminator, with a learning rate each; the phases clear everything before they begin.
# hint: params-in-two-optimizers (autoencoder and generator share the encoder here)
# source: fducau/AAE_pytorch script/aae_pytorch_basic.py
import torch
from torch import nn

torch.manual_seed(244)
encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2))
decoder = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 12))
critic = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1))
optim_dec = torch.optim.Adam(decoder.parameters(), lr=5e-3)
optim_enc = torch.optim.Adam(encoder.parameters(), lr=5e-3)
optim_gen = torch.optim.Adam(encoder.parameters(), lr=1e-3)
optim_critic = torch.optim.Adam(critic.parameters(), lr=2e-3)
bce = nn.BCEWithLogitsLoss()
data = torch.randn(256, 3) @ torch.randn(3, 12)


def clear():
    for net in (encoder, decoder, critic):
        net.zero_grad()


for epoch in range(6):
    for x in data[torch.randperm(256)].split(32):
        clear()
        recon_loss = nn.functional.mse_loss(decoder(encoder(x)), x)
        recon_loss.backward()
        optim_dec.step()
        optim_enc.step()

        clear()
        encoder.eval()
        z_fake = encoder(x).detach()
        d_loss = bce(critic(torch.randn(32, 2)), torch.ones(32, 1)) + bce(critic(z_fake), torch.zeros(32, 1))
        d_loss.backward()
        optim_critic.step()

        clear()
        encoder.train()
        g_loss = bce(critic(encoder(x)), torch.ones(32, 1))
        g_loss.backward()
        optim_gen.step()
    print(f"{epoch} reconstruction {recon_loss.item():.3f} D {d_loss.item():.3f} G {g_loss.item():.3f}")
