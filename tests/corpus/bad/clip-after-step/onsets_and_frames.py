# A transcription model over an endless loader: for each parameter tensor the norm is clipped, after the update.
# source: jongwook/onsets-and-frames#24
# expect: clip-after-step
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, TensorDataset


def cycle(iterable):
    while True:
        yield from iterable


class Onsets(nn.Module):
    def __init__(self, n_mels=12, n_keys=6):
        super().__init__()
        self.conv = nn.Conv1d(n_mels, 16, 3, padding=1)
        self.lstm = nn.LSTM(16, 8, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(16, n_keys)

    def run_on_batch(self, mel, onset):
        x = torch.relu(self.conv(mel)).transpose(1, 2)
        pred = torch.sigmoid(self.fc(self.lstm(x)[0]))
        return {"loss/onset": nn.functional.binary_cross_entropy(pred, onset)}


torch.manual_seed(2)
iterations, clip_gradient_norm = 12, 0.05
mel = torch.rand(24, 12, 10)
data = TensorDataset(mel, (mel[:, :6] > 0.7).float().transpose(1, 2).contiguous())
model = Onsets()
optimizer = torch.optim.Adam(model.parameters(), 6e-4)
loader = cycle(DataLoader(data, 6, shuffle=True, drop_last=True))
for i in range(1, iterations + 1):
    losses = model.run_on_batch(*next(loader))
    loss = sum(losses.values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for parameter in model.parameters():
        clip_grad_norm_([parameter], clip_gradient_norm)  # <- clip-after-step, cause
    if i % 4 == 0:
        print(i, loss.item())
