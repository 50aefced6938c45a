# An accumulating language-model loop with "with ctx:" around the loop body instead of around the forward pass.
# source: a common pattern; documented in https://docs.pytorch.org/docs/stable/amp.html#torch.autocast
# expect: backward-inside-autocast
import torch
from torch import nn
from torch.autograd import backward
from torch.utils.data import DataLoader

torch.manual_seed(3)
accum = 2
tokens = torch.randint(0, 24, (64, 8))
loader = DataLoader(tokens, batch_size=4, shuffle=True)
lm = nn.Sequential(nn.Embedding(24, 16), nn.LayerNorm(16), nn.Linear(16, 24))
optimizer = torch.optim.AdamW(lm.parameters(), lr=2e-3)
ctx = torch.autocast("cpu", dtype=torch.bfloat16)

for epoch in range(2):
    with ctx:  # <- cause
        for i, batch in enumerate(loader):
            logits = lm(batch[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            backward(loss / accum)  # <- backward-inside-autocast
            if (i + 1) % accum == 0:
                nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
    print(f"epoch {epoch} loss {loss.item():.4f}")
