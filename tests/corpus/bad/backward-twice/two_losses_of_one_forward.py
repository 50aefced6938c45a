# Two losses of one forward pass, each with a backward() of its own: the first frees what the second needs.
# source: naver-ai/StyleMapGAN#16
# expect: backward-twice
# raises: RuntimeError
import torch
from torch import nn

torch.manual_seed(75)
encoder, decoder = nn.Sequential(nn.Linear(8, 12), nn.Tanh()), nn.Linear(12, 8)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
for i in range(10):
    x = torch.randn(16, 8)
    w = encoder(x)
    g_loss = nn.functional.mse_loss(decoder(w), x)
    w_rec_loss = w.square().mean()
    optimizer.zero_grad()
    g_loss.backward()  # <- cause
    w_rec_loss.backward()  # <- backward-twice, cause
    optimizer.step()
    print(i, g_loss.item())
