# Logistic regression on the full batch, LBFGS with strong_wolfe, cleared after each step where Adam had been before.
# source: none (a common mistake, written small)
# expect: missing-zero-grad
import torch
from torch import nn

torch.manual_seed(3)
features = torch.randn(120, 6)
labels = (features[:, 0] - features[:, 1] > 0).float()
weights, bias = torch.zeros(6, requires_grad=True), torch.zeros(1, requires_grad=True)
optimizer = torch.optim.LBFGS([weights, bias], lr=0.5, max_iter=10, history_size=5, line_search_fn="strong_wolfe")
criterion = nn.BCEWithLogitsLoss()


def compute():
    logits = features @ weights + bias  # <- cause
    loss = criterion(logits, labels) + 1e-3 * weights.square().sum()  # <- cause
    loss.backward()  # <- cause
    return loss


for iteration in range(5):
    value = optimizer.step(compute)  # <- missing-zero-grad
    optimizer.zero_grad()  # <- cause
    print(iteration, value.item())
