# Two models in turn: train_batch() takes opt, but clears the global optimizer, which is that of the first model.
# source: PacktPublishing/Modern-Computer-Vision-with-PyTorch-2E#7
# expect: missing-zero-grad
import numpy as np
import torch
import torch.nn as nn
from torch.optim import Adam
from torch.utils.data import DataLoader, TensorDataset


class FashionNet(nn.Module):
    def __init__(self, batch_norm=False):
        super().__init__()
        self.input_to_hidden_layer = nn.Linear(36, 20)
        self.batch_norm = nn.BatchNorm1d(20) if batch_norm else nn.Identity()
        self.hidden_to_output_layer = nn.Linear(20, 4)

    def forward(self, x):
        return self.hidden_to_output_layer(torch.relu(self.batch_norm(self.input_to_hidden_layer(x))))


def get_model(batch_norm):
    model = FashionNet(batch_norm)
    return model, nn.CrossEntropyLoss(), Adam(model.parameters(), lr=1e-3)


def train_batch(x, y, model, opt, loss_fn):
    model.train()
    batch_loss = loss_fn(model(x), y)  # <- cause
    batch_loss.backward()  # <- cause
    opt.step()  # <- missing-zero-grad, cause
    optimizer.zero_grad()  # <- cause
    return batch_loss.item()


torch.manual_seed(13)
x = torch.rand(80, 36)
y = x.view(80, 4, 9).mean(2).argmax(1)
trn_dl = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)

model, loss_fn, optimizer = get_model(batch_norm=False)
for epoch in range(2):
    losses = [train_batch(x, y, model, optimizer, loss_fn) for x, y in trn_dl]
    print("plain", epoch, np.mean(losses))

bn_model, loss_fn, bn_optimizer = get_model(batch_norm=True)
for epoch in range(3):
    losses = [train_batch(x, y, bn_model, bn_optimizer, loss_fn) for x, y in trn_dl]
    print("batch norm", epoch, np.mean(losses))
