# One scaler for two models, two optimizers and two losses; only the first optimizer's gradients are unscaled early.
# source: docs.pytorch.org/docs/stable/notes/amp_examples.html (Working with Multiple Models, Losses, and Optimizers)
import torch

torch.manual_seed(78)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
model0 = torch.nn.Linear(6, 3)
model1 = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 3))
optimizer0 = torch.optim.SGD(model0.parameters(), lr=0.05)
optimizer1 = torch.optim.Adam(model1.parameters(), lr=5e-3)
loss_fn = torch.nn.functional.mse_loss

for i in range(40):
    inp = torch.randn(32, 6)
    target = torch.stack([inp[:, 0], inp[:, 1:3].sum(1), inp[:, 3].abs()], 1)
    optimizer0.zero_grad()
    optimizer1.zero_grad()
    with torch.autocast(device_type="cpu", dtype=torch.float16):
        output0 = model0(inp)
        output1 = model1(inp)
        loss0 = loss_fn(2 * output0 + 3 * output1, target)
        loss1 = loss_fn(3 * output0 - 5 * output1, target)
    scaler.scale(loss0).backward(retain_graph=True)
    scaler.scale(loss1).backward()
    scaler.unscale_(optimizer0)
    torch.nn.utils.clip_grad_norm_(model0.parameters(), 5.0)
    scaler.step(optimizer0)
    scaler.step(optimizer1)
    scaler.update()
    if i % 13 == 0:
        print(i, f"{loss0.item():.4f} {loss1.item():.4f}")
