# A pointer over positions: scores are turned into probabilities by a helper, and F.nll_loss is given those.
# source: none (a common mistake, written small)
# expect: softmax-before-cross-entropy
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(6)
encoder, pointer = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*encoder.parameters(), *pointer.parameters()], lr=3e-3)


def attention(sequence):
    states, _ = encoder(sequence)
    return pointer(states).squeeze(2).softmax(dim=1)  # <- cause


def train_step(sequence):
    position = sequence[:, :, 0].argmax(dim=1)
    loss = F.nll_loss(attention(sequence), position)  # <- softmax-before-cross-entropy
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


for sequence in torch.randn(25, 8, 6, 3):
    train_step(sequence)
