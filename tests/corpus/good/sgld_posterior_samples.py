# Stochastic gradient Langevin dynamics: noise goes into the weights after each step, the loss is scaled to the whole
# data set, and snapshots of the weights are collected as a posterior.
# source: ratschlab/bnn_priors bnn_priors/mcmc/sgld.py, JavierAntoran/Bayesian-Neural-Networks README.md
import copy
import math

import torch
from torch import nn

torch.manual_seed(107)
x = torch.rand(100, 1, dtype=torch.float64) * 4 - 2
y = x**2 / 2 + 0.1 * torch.randn(100, 1, dtype=torch.float64)
model = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1)).to(torch.float64)
samples, lr = [], 2e-5
for step in range(300):
    rows = torch.randint(0, 100, (20,))
    model.zero_grad()
    neg_log_lik = 0.5 * (model(x[rows]) - y[rows]).pow(2).sum() / 0.1**2 * (100 / 20)
    neg_log_prior = 0.5 * sum(p.pow(2).sum() for p in model.parameters())
    (neg_log_lik + neg_log_prior).backward()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(p.grad, alpha=-0.5 * lr)
            p.add_(torch.randn_like(p), alpha=math.sqrt(lr))
    if step % 100 == 0:
        print(step, neg_log_lik.item())
    if step >= 200 and step % 10 == 0:
        samples.append(copy.deepcopy(model.state_dict()))
with torch.no_grad():
    outputs = []
    for state in samples:
        model.load_state_dict(state)
        outputs.append(model(x))
print(len(samples), (torch.stack(outputs).mean(0) - y).pow(2).mean().sqrt().item())
