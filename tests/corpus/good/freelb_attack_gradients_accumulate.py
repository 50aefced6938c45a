# FreeLB: every ascent step on the embedding's noise divides its loss by the number of steps, and its gradients for the
# weights are meant to add up: the optimizer steps on the mean over all of them.
# source: zhuchen03/FreeLB huggingface-transformers/examples/run_glue_freelb.py
import torch
from torch import nn

torch.manual_seed(226)
adv_steps, adv_lr, max_norm = 3, 0.1, 0.3
embedding, encoder, head = nn.Embedding(30, 12), nn.GRU(12, 24, batch_first=True), nn.Linear(24, 2)
model = nn.ModuleList([embedding, encoder, head])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
tokens = torch.randint(0, 30, (160, 7))
labels = (tokens[:, -2] > 14).long()

for epoch in range(5):
    for rows in torch.randperm(160).split(20):
        delta = torch.zeros(len(rows), 7, 12).uniform_(-0.05, 0.05).requires_grad_()
        for astep in range(adv_steps):
            hidden, _ = encoder(embedding(tokens[rows]) + delta)
            loss = nn.functional.cross_entropy(head(hidden[:, -1]), labels[rows]) / adv_steps
            loss.backward()
            if astep == adv_steps - 1:
                break
            grad = delta.grad.detach()
            norm = grad.flatten(1).norm(dim=1).clamp_min(1e-8).view(-1, 1, 1)
            delta = (delta + adv_lr * grad / norm).detach()
            length = delta.flatten(1).norm(dim=1).view(-1, 1, 1)
            delta = (delta * (max_norm / length).clamp(max=1)).requires_grad_()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        model.zero_grad()
    print(f"epoch {epoch} loss {adv_steps * loss.item():.4f}")
