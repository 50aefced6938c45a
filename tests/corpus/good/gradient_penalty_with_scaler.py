# A gradient penalty under mixed precision: scaled gradients are taken with create_graph, unscaled by hand, and their
# norm joins the loss that is scaled again for the backward that counts.
# source: docs.pytorch.org/docs/stable/notes/amp_examples.html (Gradient penalty)
import torch
from torch import nn
from torch.amp import GradScaler, autocast

torch.manual_seed(24)
model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = GradScaler("cpu", init_scale=2.0**8)
loss_fn = nn.MSELoss()

for epoch in range(2):
    for _ in range(12):
        data = torch.randn(32, 6)
        target = data.sum(1, keepdim=True).tanh()
        optimizer.zero_grad()
        with autocast(device_type="cpu", dtype=torch.float16):
            output = model(data)
            loss = loss_fn(output, target)

        scaled_grad_params = torch.autograd.grad(
            outputs=scaler.scale(loss), inputs=list(model.parameters()), create_graph=True
        )
        inv_scale = 1.0 / scaler.get_scale()
        grad_params = [p * inv_scale for p in scaled_grad_params]
        with autocast(device_type="cpu", dtype=torch.float16):
            grad_norm = 0
            for grad in grad_params:
                grad_norm += grad.pow(2).sum()
            grad_norm = grad_norm.sqrt()
            loss = loss + 0.01 * grad_norm
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    print(epoch, f"loss {loss.item():.4f} grad norm {grad_norm.item():.4f}")
