# Every fifth update the norms of the gradients are written to a log, but only after they have been cleared.
# source: helmholtz-analytics/heat#1148
# expect: grad-none-after-zero-grad
# raises: AttributeError
import torch
from torch import nn
from torch.nn.functional import mse_loss


class Logger:
    def __init__(self, every):
        self.every, self.rows = every, []

    def __call__(self, step, model):
        if step % self.every == 0:
            for name, p in model.named_parameters():
                norm = p.grad.norm().item()  # <- grad-none-after-zero-grad
                self.rows.append((step, name, norm))


def train(model, optimizer, batches, log):
    for step, (x, y) in enumerate(batches, start=1):
        loss = mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        model.zero_grad()  # <- cause
        log(step, model)  # <- cause
        print(step, round(loss.item(), 5))


torch.manual_seed(3)
x = torch.randn(20, 10, 5)
model = nn.Sequential(nn.Linear(5, 12), nn.Softplus(), nn.Linear(12, 5))
optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
train(model, optimizer, list(zip(x, x.cumsum(-1), strict=True)), Logger(every=5))
