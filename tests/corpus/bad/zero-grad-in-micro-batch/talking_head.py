# A transformer encoder for motion, accumulating four batches, but zero_grad runs before every backward.
# source: ZiqiaoPeng/DualTalk#9
# expect: zero-grad-in-micro-batch
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Motion(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.inp = nn.Linear(5, dim)
        layer = nn.TransformerEncoderLayer(dim, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.out = nn.Linear(dim, 3)

    def forward(self, audio):
        return self.out(self.encoder(self.inp(audio)))


def trainer(args, train_loader, model, optimizer, criterion):
    iteration = 0
    for _e in range(1, args.max_epoch + 1):
        loss_log = []
        model.train()
        for i, (audio, vertice) in enumerate(train_loader, start=1):
            iteration += 1
            loss = criterion(model(audio), vertice) / args.gradient_accumulation_steps
            optimizer.zero_grad()  # <- zero-grad-in-micro-batch, cause
            loss.backward()
            loss_log.append(loss.item())
            if i % args.gradient_accumulation_steps == 0:
                optimizer.step()
        print(f"TRAIN LOSS: {sum(loss_log) / len(loss_log):.7f}")


torch.manual_seed(7)
args = argparse.Namespace(gradient_accumulation_steps=4, max_epoch=4)
audio = torch.randn(24, 6, 5)
dataset = TensorDataset(audio, audio[..., :3].cumsum(1))
loader = DataLoader(dataset, batch_size=2, shuffle=True)
model = Motion()
optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=1e-3)
trainer(args, loader, model, optimizer, nn.MSELoss())
