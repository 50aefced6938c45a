# One sine wave at a time: the LSTM gives (1, T) and the target is (1, T, 1), so every time step is compared with all.
# source: pytorch/examples time_sequence_prediction, with one wave a batch and the mistake put in
# expect: loss-broadcasts
import torch
from torch import nn


class Sequence(nn.Module):
    def __init__(self, hidden=12):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, inputs):
        h, _ = self.lstm(inputs)
        return self.linear(h).squeeze(2)  # <- cause


torch.manual_seed(0)
shifts = torch.randint(-20, 20, (40, 1))
data = torch.sin((torch.arange(31) + shifts) / 5.0)[..., None]
seq, criterion = Sequence(), nn.MSELoss()
optimizer = torch.optim.Adam(seq.parameters(), lr=5e-3)
for epoch in range(2):
    total = 0.0
    for wave in data.split(1):
        inputs, target = wave[:, :-1], wave[:, 1:]  # <- cause
        out = seq(inputs)
        loss = criterion(out, target)  # <- loss-broadcasts, cause
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print("epoch", epoch, "loss", total / len(data))
