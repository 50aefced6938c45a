# nanoGPT's loop: micro-steps inside each iteration, the next batch fetched between forward and backward, gradients
# flushed after the step, the learning rate written by hand, the loss estimated in eval mode in between.
# source: karpathy/nanoGPT train.py
import math

import torch
import torch.nn as nn
from torch.nn import functional as F

torch.manual_seed(1337)
block_size, batch_size, vocab_size = 8, 6, 11
gradient_accumulation_steps, max_iters, warmup_iters, learning_rate, min_lr = 5, 30, 5, 1e-2, 1e-3
data = (torch.arange(500) ** 2) % vocab_size


class GPT(nn.Module):
    def __init__(self, n_embd=24):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, n_embd), nn.Embedding(block_size, n_embd)
        self.block = nn.TransformerEncoderLayer(n_embd, 2, 48, dropout=0.1, batch_first=True, norm_first=True)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx, targets):
        mask = nn.Transformer.generate_square_subsequent_mask(block_size)
        h = self.block(self.wte(idx) + self.wpe.weight, src_mask=mask, is_causal=True)
        logits = self.lm_head(h)
        return logits, F.cross_entropy(logits.view(-1, vocab_size), targets.view(-1))


def get_batch(split):
    part = data[:400] if split == "train" else data[400:]
    ix = torch.randint(len(part) - block_size - 1, (batch_size,))
    return torch.stack([part[i : i + block_size] for i in ix]), torch.stack(
        [part[i + 1 : i + 1 + block_size] for i in ix]
    )


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95))


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in ["train", "val"]:
        out[split] = torch.stack([model(*get_batch(split))[1] for _ in range(5)]).mean().item()
    model.train()
    return out


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    ratio = (it - warmup_iters) / (max_iters - warmup_iters)
    return min_lr + 0.5 * (1 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


X, Y = get_batch("train")
iter_num = 0
while True:
    for group in optimizer.param_groups:
        group["lr"] = get_lr(iter_num)
    if iter_num % 10 == 0:
        print(iter_num, estimate_loss())
    for _micro_step in range(gradient_accumulation_steps):
        logits, loss = model(X, Y)
        loss = loss * (1 / gradient_accumulation_steps)
        X, Y = get_batch("train")
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    iter_num += 1
    if iter_num > max_iters:
        break
