# A GAN that clears each optimizer only after its own step: what G's backward left in D.grad goes into D's next step.
# source: Lightning-AI/pytorch-lightning#557
# expect: foreign-gradients-in-step
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(10, 32), nn.LeakyReLU(0.2), nn.Linear(32, 16), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1), nn.Sigmoid())
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
imgs = torch.tanh(torch.randn(128, 16).cumsum(1))
loader = torch.utils.data.DataLoader(imgs, batch_size=16, shuffle=True)

for epoch in range(2):
    for batch in loader:
        valid, fake = torch.ones(len(batch), 1), torch.zeros(len(batch), 1)
        # train generator
        generated = generator(torch.randn(len(batch), 10))
        g_loss = F.binary_cross_entropy(discriminator(generated), valid)
        g_loss.backward()  # <- cause
        opt_g.step()
        opt_g.zero_grad()

        # train discriminator
        real_loss = F.binary_cross_entropy(discriminator(batch), valid)  # <- cause
        fake_loss = F.binary_cross_entropy(discriminator(generated.detach()), fake)
        d_loss = (real_loss + fake_loss) / 2
        d_loss.backward()  # <- cause
        opt_d.step()  # <- foreign-gradients-in-step, cause
        opt_d.zero_grad()  # <- cause
    print(f"epoch {epoch} g_loss {g_loss.item():.4f} d_loss {d_loss.item():.4f}")
