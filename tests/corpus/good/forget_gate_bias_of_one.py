# An LSTM whose forget gate's bias is set to 1 in a slice, under no_grad, before the training.
# source: none (a common pattern, written small)
import torch
from torch import nn

torch.manual_seed(1)
lstm, head = nn.LSTM(3, 6, batch_first=True), nn.Linear(6, 1)
with torch.no_grad():
    lstm.bias_ih_l0[6:12].fill_(1.0)
optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=1e-2)
for x in torch.randn(40, 8, 5, 3):
    loss = (head(lstm(x)[0][:, -1]) - x.sum((1, 2)).unsqueeze(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
