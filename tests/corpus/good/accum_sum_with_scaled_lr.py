# The loss of each part is not divided: the learning rate is, which for plain SGD is the same thing.
# source: arxiv.org/abs/1706.02677 (linear scaling; summed against averaged gradients, section 3)
import torch
import torch.nn as nn

torch.manual_seed(70)
ACCUMULATE, BASE_LR = 8, 1.2
model = nn.Sequential(nn.Conv1d(2, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(6, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=BASE_LR / ACCUMULATE)
criterion = nn.CrossEntropyLoss()
signal = torch.randn(320, 2, 12)
label = (signal.diff(dim=2).abs().mean((1, 2)) > 1.13).long()

for epoch in range(5):
    optimizer.zero_grad()
    losses = []
    for i, rows in enumerate(torch.randperm(320).chunk(40), start=1):
        loss = criterion(model(signal[rows]), label[rows])
        loss.backward()
        losses.append(loss.item())
        if i % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, sum(losses) / len(losses))
