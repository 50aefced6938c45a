# clip_grad_norm_ with max_norm=inf clips nothing: it is there for the norm that it returns, before and again after the
# step, for a log.
# source: Skovorp/feral#16 (log_grad_norm), pytorch/pytorch#1032
import torch
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(74)
model = torch.nn.RNN(4, 16, batch_first=True)
readout = torch.nn.Linear(16, 1)
params = [*model.parameters(), *readout.parameters()]
optimizer = torch.optim.Adam(params, lr=1e-2)
log = []
for step in range(24):
    x = torch.randn(16, 10, 4)
    loss = (readout(model(x)[1][0]) - x[:, -1].sum(1, keepdim=True)).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    recurrent = clip_grad_norm_(model.parameters(), max_norm=float("inf"))
    grad_norm = clip_grad_norm_(params, max_norm=float("inf"))
    optimizer.step()
    unchanged = clip_grad_norm_(params, float("inf"))
    assert torch.equal(grad_norm, unchanged)
    log.append((loss.item(), grad_norm.item(), recurrent.item()))
    if step % 8 == 7:
        print(step, *(f"{v:.3f}" for v in log[-1]))
