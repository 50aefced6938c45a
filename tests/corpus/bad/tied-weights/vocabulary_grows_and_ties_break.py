# Four new words make the shared matrix larger: encoder and decoder get a larger one each.
# source: none (a common mistake, written small)
# expect: tied-weights
# severity: hint (two weights may be wanted)
import torch
from torch import nn

torch.manual_seed(1)
encoder, decoder = nn.Linear(12, 6, bias=False), nn.Linear(12, 6, bias=False)
decoder.weight = encoder.weight


def grow(layer, more):
    old = layer.weight.data
    layer.weight = nn.Parameter(torch.cat([old, torch.zeros(old.shape[0], more)], 1))  # <- tied-weights, cause


for layer in (encoder, decoder):
    grow(layer, more=4)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.05)
for _step in range(12):
    x = torch.randn(8, 16)
    code = torch.tanh(encoder(x))
    optimizer.zero_grad()
    (code - decoder(x.flip(0))).square().mean().backward()
    optimizer.step()
