# The hidden state is carried without detach and retain_graph=True silences the error, so each step walks further back.
# source: MorvanZhou/PyTorch-Tutorial#57
# expect: retain-graph-growth
import numpy as np
import torch
from torch import nn

torch.manual_seed(1)
TIME_STEP, INPUT_SIZE, LR = 10, 1, 0.02


class RNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNNCell(INPUT_SIZE, 24)
        self.out = nn.Linear(24, 1)

    def forward(self, x, h):
        outs = []
        for t in range(x.shape[0]):
            h = self.rnn(x[t], h)
            outs.append(self.out(h))
        return torch.stack(outs), h


rnn = RNN()
loss_func = nn.MSELoss()
h_state = torch.zeros(1, 24)
for step in range(16):
    steps = np.linspace(step * np.pi, (step + 1) * np.pi, TIME_STEP, dtype=np.float32)
    x = torch.from_numpy(np.sin(steps)).view(TIME_STEP, 1, 1)
    y = torch.from_numpy(np.cos(steps)).view(TIME_STEP, 1, 1)
    prediction, h_state = rnn(x, h_state)  # <- cause
    loss = loss_func(prediction, y)
    rnn.zero_grad()
    loss.backward(retain_graph=True)  # <- retain-graph-growth, cause
    nn.utils.clip_grad_value_(rnn.parameters(), 1.0)
    for p in rnn.parameters():
        p.data -= LR * p.grad.data
    if step % 5 == 0:
        print(step, loss.item())
