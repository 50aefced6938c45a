# Annealed Gaussian noise is added to every gradient between backward and step.
# source: pytorch/pytorch#4332, arxiv.org/abs/1511.06807
import torch

torch.manual_seed(39)
model = torch.nn.Bilinear(3, 3, 1)
opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
eta, gamma = 0.1, 0.55
for t in range(60):
    a, b = torch.randn(2, 32, 3)
    loss = (model(a, b).squeeze(1) - (a * b).sum(1)).square().mean()
    opt.zero_grad()
    loss.backward()
    sigma = (eta / (1 + t) ** gamma) ** 0.5
    for p in model.parameters():
        p.grad += sigma * torch.randn_like(p.grad)
    opt.step()
    if t % 15 == 0:
        print(t, f"{loss.item():.4f} sigma {sigma:.3f}")
