# A pretraining loop in bfloat16 that clips after each of its four micro-steps, inside the accumulation loop.
# source: facebookresearch/lingua#59
# expect: clip-inside-accumulation
import torch
from torch import nn

torch.manual_seed(3)
grad_acc_steps, clip, steps = 4, 0.1, 10
model = nn.Sequential(nn.Embedding(32, 16), nn.RMSNorm(16), nn.Linear(16, 48), nn.SiLU(), nn.Linear(48, 32))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)
corpus = torch.randint(0, 32, (steps * grad_acc_steps, 4, 9))
data_loader = iter(corpus)

for step in range(steps):
    loss_log = 0.0
    acc_step = 0
    while acc_step < grad_acc_steps:
        batch = next(data_loader)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            pred = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(pred.flatten(0, 1).float(), batch[:, 1:].flatten())
        loss = loss / grad_acc_steps
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=clip)  # <- clip-inside-accumulation, cause
        loss_log += loss.item()
        acc_step += 1
    optimizer.step()
    optimizer.zero_grad()
    if step % 3 == 0:
        print(f"step: {step} loss: {loss_log:.4f} grad: {norm.item():.2e}")
