# Two networks and two losses with one scaler; the second loss is backpropagated unscaled and then unscaled by its step.
# source: a common pattern; documented in https://docs.pytorch.org/docs/stable/notes/amp_examples.html#working-with-multiple-models-losses-and-optimizers
# expect: scaler-bypassed
import torch
from torch import nn
from torch.nn.functional import cross_entropy, kl_div

torch.manual_seed(2)
teacher = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
student = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 4))
opt_t = torch.optim.SGD(teacher.parameters(), lr=0.1)
opt_s = torch.optim.SGD(student.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
x = torch.randn(128, 8)
y = x[:, :4].argmax(1)

for epoch in range(2):
    for pick in torch.randperm(128).split(16):
        opt_t.zero_grad()
        opt_s.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            logits_t = teacher(x[pick]).float()
            logits_s = student(x[pick]).float()
        loss_t = cross_entropy(logits_t, y[pick])
        loss_s = kl_div(logits_s.log_softmax(1), logits_t.detach().softmax(1), reduction="batchmean")
        scaler.scale(loss_t).backward()
        loss_s.backward()  # <- scaler-bypassed, cause
        scaler.step(opt_t)
        scaler.step(opt_s)
        scaler.update()
    print(f"epoch {epoch} teacher {loss_t.item():.4f} student {loss_s.item():.4f}")
