# An RNN from scratch with its state carried through the text: detach_() in place before each chunk, and SGD by hand
# with clipping by hand.
# source: ShusenTang/Dive-into-DL-PyTorch#146 (the state is to be detached when batches follow one another)
import torch
from torch import nn

torch.manual_seed(272)
size, hidden = 6, 20
W_xh, W_hh, W_hq = torch.randn(size, hidden) * 0.3, torch.randn(hidden, hidden) * 0.2, torch.randn(hidden, size) * 0.3
b_h, b_q = torch.zeros(hidden), torch.zeros(size)
params = [p.requires_grad_() for p in (W_xh, W_hh, b_h, W_hq, b_q)]
corpus = torch.tensor([0, 1, 2, 3, 4, 5, 4, 3, 2, 1] * 40)
corpus = torch.stack([corpus.roll(k) for k in (0, 3, 6, 9)], 1)


def rnn(inputs, state):
    outputs = []
    for x in nn.functional.one_hot(inputs, size).float():
        state = torch.tanh(x @ W_xh + state @ W_hh + b_h)
        outputs.append(state @ W_hq + b_q)
    return torch.stack(outputs), state


for epoch in range(4):
    state = torch.zeros(4, hidden)
    for start in range(0, 390, 10):
        state.detach_()
        output, state = rnn(corpus[start : start + 10], state)
        loss = nn.functional.cross_entropy(output.flatten(0, 1), corpus[start + 1 : start + 11].flatten())
        for p in params:
            p.grad = None
        loss.backward()
        norm = torch.stack([p.grad.norm() for p in params]).norm()
        with torch.no_grad():
            for p in params:
                p -= 0.5 * p.grad * (1.0 / norm).clamp(max=1.0)
    print(f"epoch {epoch} perplexity {loss.exp().item():.3f}")
