# A plasticity surrogate: zero_grad and backward in every batch, the optimizer step was lost when cleaning up.
# source: neuraloperator/Geo-FNO#3
# expect: never-steps
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)


class SpectralConv1d(torch.nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        self.weight = torch.nn.Parameter(torch.randn(width, width, modes, dtype=torch.cfloat) / width)

    def forward(self, x):
        x_ft = torch.fft.rfft(x)
        out = torch.zeros_like(x_ft)
        out[..., : self.modes] = torch.einsum("bix,iox->box", x_ft[..., : self.modes], self.weight)
        return torch.fft.irfft(out, n=x.shape[-1])


class FNO1d(torch.nn.Module):
    def __init__(self, width=6, modes=4):
        super().__init__()
        self.p, self.q = torch.nn.Conv1d(1, width, 1), torch.nn.Conv1d(width, 1, 1)
        self.conv, self.w = SpectralConv1d(width, modes), torch.nn.Conv1d(width, width, 1)

    def forward(self, x):
        x = self.p(x)
        return self.q(F.gelu(self.conv(x) + self.w(x)))


x = torch.randn(48, 1, 16)
train_loader = DataLoader(TensorDataset(x, x.cumsum(-1) / 4), batch_size=8, shuffle=True)
model = FNO1d()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
for ep in range(4):
    model.train()
    train_l2 = 0.0
    for xx, yy in train_loader:
        optimizer.zero_grad()
        im = model(xx)
        loss = (im - yy).flatten(1).norm(dim=1).div(yy.flatten(1).norm(dim=1)).sum()
        loss.backward()  # <- never-steps, cause
        train_l2 += loss.item()
    print(ep, train_l2 / 48)
