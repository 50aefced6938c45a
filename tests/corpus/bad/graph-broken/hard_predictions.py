# A classifier whose loss is computed from hard labels instead of logits; backward has nothing to follow.
# source: https://php.bkmy88.com/faq/1835025.html
# expect: graph-broken
# raises: RuntimeError
import torch
from torch import nn

torch.manual_seed(42)
x_train = torch.randn(120, 2)
y_train = (x_train.prod(1) > 0).float()

model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
loss_fn = nn.L1Loss()
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)


def accuracy(y_true, y_pred):
    return (y_true == y_pred).float().mean().item() * 100


epochs = 20
for epoch in range(epochs):
    model.train()
    train_logits = model(x_train)
    train_preds_probs = torch.softmax(train_logits, dim=1).argmax(dim=1).type(torch.float32)  # <- cause
    loss = loss_fn(train_preds_probs, y_train)  # <- cause
    train_accu = accuracy(y_train, train_preds_probs)
    optimiser.zero_grad()
    loss.backward()  # <- graph-broken
    optimiser.step()
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {train_accu:.1f}")
