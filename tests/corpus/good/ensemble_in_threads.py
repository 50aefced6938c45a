# An ensemble: each member is trained in its own thread with its own optimizer at the same time; afterwards the weights
# are stacked and evaluated at once.
# source: pytorch/tutorials intermediate_source/ensembling.py
import copy
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.func import functional_call, stack_module_state

torch.manual_seed(94)
x = torch.linspace(-2, 2, 80).unsqueeze(1)
y = x.sin() + 0.05 * torch.randn(80, 1)
models = [nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1)) for _ in range(3)]


def fit(model):
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(40):
        rows = torch.randint(0, 80, (80,), generator=generator)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    return loss.item()


with ThreadPoolExecutor(max_workers=3) as pool:
    print([round(v, 4) for v in pool.map(fit, models)])

params, buffers = stack_module_state(models)
base_model = copy.deepcopy(models[0]).to("meta")
with torch.no_grad():
    predictions = torch.vmap(lambda p, b: functional_call(base_model, (p, b), (x,)))(params, buffers)
print(nn.functional.mse_loss(predictions.mean(0), y).item(), predictions.std(0).mean().item())
