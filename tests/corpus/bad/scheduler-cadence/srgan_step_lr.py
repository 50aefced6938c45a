# A super-resolution generator: StepLR with its step size in epochs is stepped after every batch, so the rate collapses.
# source: Lornatang/SRGAN-PyTorch#1
# expect: scheduler-cadence
import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
epochs = 6


class Generator(nn.Module):
    def __init__(self, scale=2):
        super().__init__()
        self.head = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.PReLU())
        self.body = nn.Conv2d(8, 8, 3, padding=1)
        self.tail = nn.Sequential(nn.Conv2d(8, scale * scale, 3, padding=1), nn.PixelShuffle(scale))

    def forward(self, lr):
        out = self.head(lr)
        return self.tail(out + self.body(out))


hr_images = torch.rand(48, 1, 8, 8).cumsum(2).cumsum(3) / 36
lr_images = nn.functional.avg_pool2d(hr_images, 2)
dataloader = DataLoader(TensorDataset(lr_images, hr_images), batch_size=6, shuffle=True)

generator = Generator()
content_criterion = nn.MSELoss()
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.9, 0.99))
g_scheduler = StepLR(g_optimizer, step_size=epochs // 2, gamma=0.1)

for epoch in range(epochs):
    generator.train()
    avg_loss = 0.0
    for lr, hr in dataloader:
        generator.zero_grad()
        sr = generator(lr)
        loss = content_criterion(sr, hr)
        loss.backward()
        g_optimizer.step()
        g_scheduler.step()  # <- scheduler-cadence, cause
        avg_loss += loss.item() / len(dataloader)
    print(f"[{epoch + 1}/{epochs}] loss {avg_loss:.5f} lr {g_scheduler.get_last_lr()[0]:.2e}")
