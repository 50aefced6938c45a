# The VAE's loss keeps its graph and steps; the discriminator's loss then uses the output computed before that step.
# source: 1Konny/FactorVAE#15
# expect: modified-in-place
# raises: RuntimeError
import torch
from torch import nn

torch.manual_seed(73)
encoder, decoder = nn.Linear(8, 4), nn.Linear(4, 8)
D = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2))
optim_vae = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
optim_d = torch.optim.Adam(D.parameters(), lr=1e-3)
ones, zeros = torch.ones(32, dtype=torch.long), torch.zeros(32, dtype=torch.long)
for i in range(10):
    x = torch.randn(32, 8)
    hidden = nn.functional.relu(encoder(x)) @ encoder.weight @ encoder.weight.T
    D_z = D(hidden)
    vae_loss = nn.functional.mse_loss(decoder(hidden), x) + (D_z[:, 0] - D_z[:, 1]).mean()
    optim_vae.zero_grad()
    vae_loss.backward(retain_graph=True)
    optim_vae.step()  # <- cause
    D_z_pperm = D(hidden[torch.randperm(32)].detach())
    cross_entropy = nn.functional.cross_entropy
    D_tc_loss = 0.5 * (cross_entropy(D_z, zeros) + cross_entropy(D_z_pperm, ones))  # <- cause
    optim_d.zero_grad()
    D_tc_loss.backward()  # <- modified-in-place
    optim_d.step()
    print(i, vae_loss.item())
