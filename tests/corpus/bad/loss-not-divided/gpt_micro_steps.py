# A tiny GPT accumulating eight micro-steps of a mean loss, without dividing by the number of micro-steps.
# source: karpathy/nanoGPT#206
# expect: loss-not-divided
# severity: hint (a sum over tasks looks the same, and a smaller lr makes up for it)
import torch
import torch.nn as nn
from torch.nn import functional as F

torch.manual_seed(1337)
gradient_accumulation_steps, batch_size, block_size, vocab_size, n_embd = 8, 4, 8, 27, 16
data = torch.randint(0, vocab_size, (400,))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, n_embd), nn.Embedding(block_size, n_embd)
        self.qkv, self.proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        q, k, v = self.qkv(x).split(n_embd, dim=2)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.view(-1, vocab_size), targets.view(-1))


def get_batch():
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i : i + block_size] for i in ix])
    y = torch.stack([data[i + 1 : i + 1 + block_size] for i in ix])
    return x, y


model = GPT()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = get_batch()
for iter_num in range(10):
    for _micro_step in range(gradient_accumulation_steps):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits, loss = model(x, y)  # <- cause
        x, y = get_batch()
        loss.backward()  # <- loss-not-divided, cause
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if iter_num % 3 == 0:
        print(f"iter {iter_num}: loss {loss.item():.4f}")
