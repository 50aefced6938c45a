# DataParallel, which without GPUs just passes through to the module; saved as model.module.state_dict().
# source: pytorch/tutorials beginner_source/blitz/data_parallel_tutorial.py
import io

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

input_size, output_size, batch_size, data_size = 5, 2, 30, 100


class RandomDataset(Dataset):
    def __init__(self, size, length):
        self.len = length
        self.data = torch.randn(length, size)

    def __getitem__(self, index):
        return self.data[index], self.data[index][:2].abs()

    def __len__(self):
        return self.len


class Model(nn.Module):
    def __init__(self, input_size, output_size):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(input_size, 32), nn.Linear(32, output_size)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


torch.manual_seed(88)
rand_loader = DataLoader(dataset=RandomDataset(input_size, data_size), batch_size=batch_size, shuffle=True)
model = nn.DataParallel(Model(input_size, output_size))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(5):
    for data, target in rand_loader:
        optimizer.zero_grad()
        loss = (model(data) - target).abs().mean()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
torch.save(model.module.state_dict(), io.BytesIO())
