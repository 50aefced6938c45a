# A small transformer learns to sort in mixed precision: bfloat16 without a scaler, or float16 with one whose first
# steps overflow; accumulation, clipping after unscale_, warm-up and cosine by LambdaLR, weight decay by groups.
# source: karpathy/nanoGPT train.py, docs.pytorch.org/docs/stable/notes/amp_examples.html
import argparse
import hashlib
import math
import tempfile
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR

DIGITS, LENGTH = 8, 5


class Block(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.heads, self.dropout = heads, dropout
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim), nn.Dropout(dropout))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.ln1(x)).chunk(3, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, dim=32, layers=1, heads=2, dropout=0.05):
        super().__init__()
        self.tok, self.pos = nn.Embedding(DIGITS, dim), nn.Embedding(2 * LENGTH, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, dropout) for _ in range(layers))
        self.ln = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, DIGITS, bias=False)
        self.head.weight = self.tok.weight
        self.apply(self._init)

    @staticmethod
    def _init(m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.05)

    def forward(self, idx, targets=None):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln(x))
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
        return logits, loss


def get_batch(n):
    inp = torch.randint(0, DIGITS, (n, LENGTH))
    whole = torch.cat([inp, inp.sort(1)[0]], 1)
    targets = whole[:, 1:].clone()
    targets[:, : LENGTH - 1] = -1
    return whole[:, :-1], targets


def configure_optimizer(model, lr, weight_decay):
    params = list(model.parameters())
    groups = [
        {"params": [p for p in params if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95))


@torch.no_grad()
def estimate_loss(model, ctx):
    model.eval()
    losses = []
    for _ in range(4):
        with ctx():
            losses.append(model(*get_batch(64))[1].item())
    model.train()
    return sum(losses) / len(losses)


def train(args, dtype):
    torch.manual_seed(args.seed)
    half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(dtype)

    def ctx():
        return torch.autocast("cpu", dtype=half) if half else nullcontext()

    model = GPT()
    optimizer = configure_optimizer(model, args.lr, 0.1)
    scheduler = LambdaLR(
        optimizer,
        lambda i: (i + 1) / 10 if i < 10 else 0.5 * (1 + math.cos(math.pi * (i - 10) / (args.iters - 10))) + 0.05,
    )
    scaler = torch.amp.GradScaler("cpu", enabled=dtype == "fp16", init_scale=2.0**20, growth_interval=40)
    skipped = 0
    for it in range(args.iters):
        for _ in range(args.accumulate):
            x, y = get_batch(args.batch)
            with ctx():
                _, loss = model(x, y)
                loss = loss / args.accumulate
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        if scaler.get_scale() < scale:
            skipped += 1
        else:
            scheduler.step()
        if it % 20 == 0 or it == args.iters - 1:
            print(
                f"{dtype} {it}: {estimate_loss(model, ctx):.4f} lr {scheduler.get_last_lr()[0]:.5f} skipped {skipped}"
            )
    return model, optimizer, scaler


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtypes", nargs="+", default=["bf16", "fp16"], choices=["bf16", "fp16", "fp32"])
    parser.add_argument("--iters", type=int, default=60)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=1337)
    arguments = parser.parse_args()
    sha = hashlib.sha256()
    for name in arguments.dtypes:
        net, opt, grad_scaler = train(arguments, name)
        with tempfile.TemporaryDirectory() as out_dir:
            checkpoint = {"model": net.state_dict(), "optimizer": opt.state_dict(), "scaler": grad_scaler.state_dict()}
            torch.save(checkpoint, Path(out_dir) / "ckpt.pt")
            restored = GPT()
            restored.load_state_dict(torch.load(Path(out_dir) / "ckpt.pt")["model"])
        for p in restored.parameters():
            sha.update(p.detach().numpy().tobytes())
    print("digest:", sha.hexdigest())
