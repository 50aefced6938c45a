# Two encoders and a head: the validation block calls train() again before the validation batches go through.
# source: pliang279/MultiBench#26
# expect: validation-in-train-mode
import torch
from torch import nn


class MMDL(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoders = nn.ModuleList([nn.Sequential(nn.Linear(6, 12), nn.ReLU()), nn.LSTM(4, 12, batch_first=True)])
        self.head = nn.Sequential(nn.BatchNorm1d(24), nn.Dropout(0.1), nn.Linear(24, 1))

    def forward(self, inputs):
        static = self.encoders[0](inputs[0])
        series = self.encoders[1](inputs[1])[0][:, -1]
        return self.head(torch.cat([static, series], 1)).squeeze(1)


def batches(start, stop, size=12):
    generator = torch.Generator().manual_seed(start)
    for _ in range(start, stop, size):
        a, b = torch.randn(size, 6, generator=generator), torch.randn(size, 5, 4, generator=generator)
        yield (a, b), a[:, 0] + b.mean((1, 2))


def train(model, total_epochs, optimtype=torch.optim.RMSprop, lr=1e-3):
    op = optimtype(model.parameters(), lr=lr)
    criterion = nn.MSELoss()
    for epoch in range(total_epochs):
        totalloss = 0.0
        model.train()
        for inputs, target in batches(0, 60):
            op.zero_grad()
            loss = criterion(model(inputs), target)
            loss.backward()
            op.step()
            totalloss += loss.item()
        model.eval()
        with torch.inference_mode():
            valloss = 0.0
            for inputs, target in batches(60, 96):
                model.train()  # <- cause
                out = model(inputs)  # <- validation-in-train-mode
                valloss += criterion(out, target).item()
        print(f"Epoch {epoch} train loss: {totalloss / 5:.4f} valid loss: {valloss / 3:.4f}")


torch.manual_seed(2)
train(MMDL(), 4)
