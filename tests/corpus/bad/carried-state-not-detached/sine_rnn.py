# An RNN follows a sine and hands its hidden state to the next segment with the graph still attached.
# source: MorvanZhou/PyTorch-Tutorial#57
# expect: carried-state-not-detached
# raises: RuntimeError
import math

import torch
from torch import nn

torch.manual_seed(1)
TIME_STEP = 10
LR = 0.02


class RNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(input_size=1, hidden_size=32, num_layers=1, batch_first=True)
        self.out = nn.Linear(32, 1)

    def forward(self, x, h_state):
        r_out, h_state = self.rnn(x, h_state)
        outs = [self.out(r_out[:, time_step, :]) for time_step in range(r_out.size(1))]
        return torch.stack(outs, dim=1), h_state


rnn = RNN()
optimizer = torch.optim.Adam(rnn.parameters(), lr=LR)
loss_func = nn.MSELoss()
h_state = None
for step in range(20):
    steps = torch.linspace(step * math.pi, (step + 1) * math.pi, TIME_STEP)
    x = steps.sin()[None, :, None]
    y = steps.cos()[None, :, None]
    prediction, h_state = rnn(x, h_state)  # <- cause
    loss = loss_func(prediction, y)
    optimizer.zero_grad()
    loss.backward()  # <- carried-state-not-detached, cause
    optimizer.step()
    print(step, loss.item())
