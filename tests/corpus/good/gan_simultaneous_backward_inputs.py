# Simultaneous gradient descent: both losses are differentiated on one forward pass, each with backward(inputs=...)
# for its own player only, and only then do both optimizers step.
# source: LMescheder/GAN_stability gan_training/train.py
# and docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
import torch
import torch.nn.functional as F

torch.manual_seed(7)
dtype = torch.float64
G = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).to(dtype)
D = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).to(dtype)
g_params, d_params = list(G.parameters()), list(D.parameters())
g_opt, d_opt = torch.optim.SGD(g_params, lr=0.05), torch.optim.SGD(d_params, lr=0.05)

for _ in range(25):
    x_real = torch.randn(32, 1, dtype=dtype) * 0.1 + 2.0
    x_fake = G(torch.randn(32, 2, dtype=dtype))
    d_real, d_fake = D(x_real), D(x_fake)
    d_loss = F.softplus(-d_real).mean() + F.softplus(d_fake).mean()
    g_loss = F.softplus(-d_fake).mean()

    d_opt.zero_grad()
    g_opt.zero_grad()
    d_loss.backward(inputs=d_params, retain_graph=True)
    g_loss.backward(inputs=g_params)
    d_opt.step()
    g_opt.step()
print(f"after 25: d {d_loss.item():.3f} g {g_loss.item():.3f} mean {x_fake.mean().item():.3f}")
