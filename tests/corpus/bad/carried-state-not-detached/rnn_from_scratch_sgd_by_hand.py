# An RNN from scratch with SGD by hand keeps its state from one random batch to the next, with the graph still attached.
# source: ShusenTang/Dive-into-DL-PyTorch#146
# expect: carried-state-not-detached
# raises: RuntimeError
import torch
from torch import nn

torch.manual_seed(70)
W_xh, W_hh, W_hq = (nn.Parameter(torch.randn(rows, columns) * 0.3) for rows, columns in ((4, 8), (8, 8), (8, 4)))
params = [W_xh, W_hh, W_hq]


def rnn(inputs, state):
    outputs = []
    for x in inputs:
        state = torch.tanh(x @ W_xh + state @ W_hh)
        outputs.append(state @ W_hq)
    return torch.cat(outputs), state


def sgd(params, lr):
    for p in params:
        p.data -= lr * p.grad
        p.grad.zero_()


state = torch.zeros(6, 8)
for i in range(10):
    x = nn.functional.one_hot(torch.randint(4, (5, 6)), 4).float()
    y, state = rnn(x, state)  # <- cause
    loss = nn.functional.cross_entropy(y, x.roll(-1, 0).flatten(0, 1).argmax(1))
    loss.backward()  # <- carried-state-not-detached, cause
    sgd(params, 0.1)
    print(i, loss.item())
