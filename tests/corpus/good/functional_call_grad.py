# A loop in torch.func style: parameters are a dict, gradients come from grad_and_value of a pure function, and the
# module itself is never stepped until its final weights are loaded back.
# source: docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html
import torch
from torch.func import functional_call, grad_and_value

torch.manual_seed(30)
model = torch.nn.Sequential(torch.nn.Linear(4, 20), torch.nn.SiLU(), torch.nn.Linear(20, 2))
params = {k: v.detach().clone() for k, v in model.named_parameters()}
velocity = {k: torch.zeros_like(v) for k, v in params.items()}


def compute_loss(params, x, y):
    return torch.nn.functional.cross_entropy(functional_call(model, params, (x,)), y)


for i in range(30):
    x = torch.randn(64, 4)
    y = (x.sum(1) > 0).long()
    grads, loss = grad_and_value(compute_loss)(params, x, y)
    for k in params:
        velocity[k] = 0.9 * velocity[k] + grads[k]
        params[k] = params[k] - 0.1 * velocity[k]
    if i % 10 == 0:
        print(i, loss.item())
model.load_state_dict(params)
