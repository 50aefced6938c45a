# A script appends each hidden state to a list at its top, with a named hook, to look at the norms at the end.
# source: none (a common mistake, written small)
# expect: graph-retained-memory-leak
import torch
from torch import nn

torch.manual_seed(2)
ACTIVATIONS = []


def keep(module, args, output):  # <- graph-retained-memory-leak, cause
    ACTIVATIONS.append(output[0])  # <- cause


rnn, head = nn.LSTM(3, 10, batch_first=True), nn.Linear(10, 3)
rnn.register_forward_hook(keep)  # <- cause
optimizer = torch.optim.RMSprop([*rnn.parameters(), *head.parameters()], lr=1e-3)
for series in torch.randn(100, 4, 7, 3).cumsum(2):
    states, _ = rnn(series[:, :-1])
    loss = nn.functional.smooth_l1_loss(head(states), series[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(max(h.norm().item() for h in ACTIVATIONS))
