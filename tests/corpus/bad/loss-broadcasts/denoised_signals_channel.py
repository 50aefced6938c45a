# A denoising network for one-channel signals: (B, 1, T) against clean signals (B, T), in an L1 loss; every signal is
# compared with every clean one of the batch.
# source: facebookresearch/denoiser solver.py (l1 of the estimate and the clean signal), with the mistake put in
# expect: loss-broadcasts
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Denoiser(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(1, hidden, 5, padding=2), nn.ReLU())
        self.decoder = nn.Conv1d(hidden, 1, 5, padding=2)

    def forward(self, mix):
        return self.decoder(self.encoder(mix))  # <- cause


class Solver:
    def __init__(self, model, optimizer, loader):
        self.model, self.optimizer, self.loader = model, optimizer, loader

    def run_one_epoch(self):
        total = 0.0
        for data in self.loader:
            noisy, clean = data  # <- cause
            estimate = self.model(noisy.unsqueeze(1))
            loss = F.l1_loss(estimate, clean)  # <- loss-broadcasts, cause
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.loader)


torch.manual_seed(1)
phase = torch.rand(48, 1) * 6
clean = torch.sin(torch.linspace(0, 12, 32) + phase)
loader = DataLoader(TensorDataset(clean + 0.3 * torch.randn_like(clean), clean), batch_size=8, shuffle=True)
model = Denoiser()
solver = Solver(model, torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.999)), loader)
for epoch in range(3):
    print(f"Train | Epoch {epoch + 1} | {solver.run_one_epoch():.5f}")
