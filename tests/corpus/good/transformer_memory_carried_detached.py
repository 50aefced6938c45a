# Transformer-XL: hidden states of the last segment are carried to the next one as memory, detached inside the forward;
# the update is by hand, without an optimizer.
# source: kimiyoung/transformer-xl pytorch/mem_transformer.py (_update_mems)
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.ff = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, dim))

    def forward(self, h, memory):
        length, total = h.shape[1], h.shape[1] + memory.shape[1]
        mask = torch.ones(length, total, dtype=torch.bool).triu(1 + memory.shape[1])
        context = torch.cat([memory, h], 1)
        h = h + self.attention(h, context, context, attn_mask=mask, need_weights=False)[0]
        return h + self.ff(h)


class Model(nn.Module):
    def __init__(self, n_tokens=12, dim=16, mem_len=8):
        super().__init__()
        self.embed, self.layers, self.mem_len = nn.Embedding(n_tokens, dim), nn.ModuleList([Layer(), Layer()]), mem_len
        self.out = nn.Linear(dim, n_tokens)

    def forward(self, tokens, memories):
        h, carried = self.embed(tokens), []
        for layer, memory in zip(self.layers, memories, strict=True):
            carried.append(torch.cat([memory, h], 1)[:, -self.mem_len :].detach())
            h = layer(h, memory)
        return self.out(h), carried


torch.manual_seed(271)
model = Model()
text = (torch.arange(401) * torch.tensor([[1], [5], [7], [11]])) % 12
memories = [torch.zeros(4, 0, 16) for _ in model.layers]
for i, start in enumerate(range(0, 400, 8)):
    logits, memories = model(text[:, start : start + 8], memories)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, start + 1 : start + 9].flatten())
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.3 * p.grad
    if i % 10 == 0:
        print(i, loss.item())
