# Federated rounds: each client trains the same module from the server's weights with a new optimizer of its own.
# source: https://arxiv.org/abs/1602.05629 (federated averaging)
import copy

import torch
from torch import nn

torch.manual_seed(7)
data = [(torch.randn(20, 4) + shift, torch.randn(20, 1)) for shift in (-1.0, 0.0, 1.0)]
worker = nn.Linear(4, 1)
server = copy.deepcopy(worker.state_dict())
for turn in range(4):
    received = []
    for x, y in data:
        for param, value in zip(worker.parameters(), server.values(), strict=True):
            param.data.copy_(value)
        optimizer = torch.optim.SGD(worker.parameters(), lr=0.05, momentum=0.9)
        for _ in range(5):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(worker(x), y)
            loss.backward()
            optimizer.step()
        received.append(copy.deepcopy(worker.state_dict()))
    server = {name: torch.stack([one[name] for one in received]).mean(0) for name in server}
    print(turn, loss.item())
