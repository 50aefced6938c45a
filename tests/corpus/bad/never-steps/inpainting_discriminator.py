# An inpainting GAN whose discriminator is cleared and backpropagated in every iteration but never updated.
# source: zhaoyuzhi/deepfillv2#6
# expect: never-steps
import torch
import torch.nn as nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.ELU(), nn.Conv2d(8, 1, 3, padding=1))
discriminator = nn.Sequential(nn.Conv2d(2, 8, 3, stride=2), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 3))
l1_loss = nn.L1Loss()
mse_loss = nn.MSELoss()
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
images = torch.rand(40, 1, 8, 8)

for epoch in range(3):
    for batch_idx in range(0, 40, 8):
        img = images[batch_idx : batch_idx + 8]
        mask = torch.zeros_like(img)
        mask[:, :, 2:5, 2:5] = 1
        out = generator(torch.cat([img * (1 - mask), mask], 1))
        fake_img = img * (1 - mask) + out * mask

        # Train discriminator
        optimizer_d.zero_grad()
        fake_scalar = discriminator(torch.cat([fake_img.detach(), mask], 1))
        true_scalar = discriminator(torch.cat([img, mask], 1))
        loss_fake = mse_loss(fake_scalar, torch.zeros_like(fake_scalar))
        loss_true = mse_loss(true_scalar, torch.ones_like(true_scalar))
        loss_d = 0.5 * (loss_fake + loss_true)
        loss_d.backward()  # <- never-steps, cause

        # Train generator
        optimizer_g.zero_grad()
        fake_scalar = discriminator(torch.cat([fake_img, mask], 1))
        gan_loss = mse_loss(fake_scalar, torch.ones_like(fake_scalar))
        loss = l1_loss(fake_img, img) + 0.01 * gan_loss
        loss.backward()
        optimizer_g.step()
    print(f"Epoch {epoch + 1} L1 {loss.item():.4f} D {loss_d.item():.4f}")
