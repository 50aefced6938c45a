# A character model with its update by hand calls h.detach() on its state, but throws away what that returns.
# source: OpenNMT/OpenNMT-py#403
# expect: carried-state-not-detached
# raises: RuntimeError
import torch
import torch.nn as nn


class DecoderState:
    def __init__(self, hidden):
        self.hidden = hidden

    def detach(self):
        for h in self.hidden:
            h.detach()  # <- cause


class CharDecoder(nn.Module):
    def __init__(self, vocab=12, size=16):
        super().__init__()
        self.size = size
        self.embed, self.cell, self.out = nn.Embedding(vocab, size), nn.LSTMCell(size, size), nn.Linear(size, vocab)

    def init_state(self, batch_size):
        return DecoderState([torch.zeros(batch_size, self.size) for _ in range(2)])

    def forward(self, chars, state):
        logits = []
        for column in chars.unbind(1):
            state.hidden = self.cell(self.embed(column), tuple(state.hidden))
            logits.append(self.out(state.hidden[0]))
        return torch.stack(logits, dim=1)


def sgd(parameters, lr):
    with torch.no_grad():
        for p in parameters:
            p -= lr * p.grad
            p.grad = None


torch.manual_seed(2)
text = torch.arange(8 * 41).view(8, 41) * 5 % 12
decoder = CharDecoder()
state = decoder.init_state(batch_size=8)
for start in range(0, 40, 10):
    inputs, targets = text[:, start : start + 10], text[:, start + 1 : start + 11]
    state.detach()  # <- cause
    scores = decoder(inputs, state)
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
    loss.backward()  # <- carried-state-not-detached
    sgd(decoder.parameters(), lr=0.5)
    print(f"truncation {start // 10} loss {loss.item():.4f}")
