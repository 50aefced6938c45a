# A draft model over eleven batches with windows of three; each epoch begins with zero_grad and the rest is lost.
# source: NVIDIA-NeMo/Automodel#2257
# expect: last-accumulation-window-dropped
import torch
from torch import nn, optim

torch.manual_seed(10)
vocab, dim, grad_accumulation_steps, num_epochs = 30, 16, 3, 4
target = nn.Sequential(nn.Embedding(vocab, dim), nn.Linear(dim, vocab)).requires_grad_(False)
draft = nn.Sequential(nn.Embedding(vocab, dim), nn.LayerNorm(dim), nn.Linear(dim, vocab))
optimizer = optim.AdamW(draft.parameters(), lr=5e-3)
batches = [torch.randint(0, vocab, (4, 8)) for _ in range(11)]


def run_step(tokens):
    teacher = target(tokens).softmax(-1)
    student = draft(tokens).log_softmax(-1)
    return -(teacher * student).sum(-1).mean()


global_step = 0
for epoch in range(num_epochs):
    optimizer.zero_grad(set_to_none=True)
    micro = 0
    for tokens in batches:
        loss = run_step(tokens) / grad_accumulation_steps
        loss.backward()
        micro += 1
        if micro == grad_accumulation_steps:  # <- cause
            optimizer.step()  # <- last-accumulation-window-dropped
            optimizer.zero_grad(set_to_none=True)
            micro = 0
            global_step += 1
    print(f"epoch {epoch} step {global_step} loss {loss.item() * grad_accumulation_steps:.4f}")  # <- cause
