# An InfoGAN's reset_grad() writes zeros into p.grad.data of all networks after model.zero_grad() removed some.
# source: wiseodd/generative-models#26
# expect: grad-none-after-zero-grad
# raises: AttributeError
import torch
import torch.nn.functional as nn

torch.manual_seed(2)


def xavier_init(*size):
    return (torch.randn(*size) / (size[0] / 2.0) ** 0.5).requires_grad_()


net = torch.nn.Linear(3, 3)
w_g, b_g = xavier_init(6, 8), torch.zeros(8, requires_grad=True)
w_d, b_d = xavier_init(8, 1), torch.zeros(1, requires_grad=True)
g_params, d_params, q_params = [w_g, b_g], [w_d, b_d], list(net.parameters())
params = g_params + d_params + q_params
solver = torch.optim.Adam(params, lr=1e-3)


def generator(z, c):
    return torch.tanh(torch.cat([z, c], 1) @ w_g + b_g)


def reset_grad():
    for p in params:
        p.grad.data.zero_()  # <- grad-none-after-zero-grad, cause


for it in range(20):
    z, c = torch.randn(16, 3), torch.randn(16, 3)
    sample = generator(z, c)
    score = torch.sigmoid(sample @ w_d + b_d)
    code = net(sample[:, :3])
    loss = nn.mse_loss(code, c) - torch.log(score + 1e-8).mean()
    loss.backward()
    solver.step()
    if it % 10 == 9:
        net.zero_grad()  # <- cause
    reset_grad()
    print(f"Iter-{it}; loss: {loss.item():.4f}")
