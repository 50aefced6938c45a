# A student learns from labels and from a teacher (cross entropy + KL + hidden states), four micro-batches to an update.
# source: huggingface/transformers examples/research_projects/distillation/distiller.py, without its division
# expect: loss-not-divided
# severity: hint (a smaller learning rate makes up for it)
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(31)
teacher = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5)).requires_grad_(False)
student = nn.ModuleDict({"hidden": nn.Linear(8, 32), "out": nn.Linear(32, 5)})
optimizer = torch.optim.SGD(student.parameters(), lr=0.02)
alpha_mse, accumulation_steps = 0.5, 4
data = torch.randn(192, 8)

for i, x in enumerate(data.split(8)):
    hidden = student["hidden"](x).relu()
    logits = student["out"](hidden)
    with torch.no_grad():
        t_hidden = teacher[1](teacher[0](x))
        t_logits = teacher[2](t_hidden)
    loss_ce = F.cross_entropy(logits, x[:, :5].argmax(1))
    loss_kl = F.kl_div(F.log_softmax(logits, dim=-1), F.softmax(t_logits, dim=-1), reduction="batchmean")
    loss = loss_ce + loss_kl + alpha_mse * F.mse_loss(hidden, t_hidden)  # <- cause
    loss.backward()  # <- loss-not-divided, cause
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
        print(i, loss.item())
