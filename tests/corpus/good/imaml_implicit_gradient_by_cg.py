# Implicit MAML: an inner optimizer solves each task with a pull towards the meta weights; the outer gradient comes from
# a few steps of conjugate gradients on Hessian-vector products, and is written into .grad.
# source: aravindr93/imaml_dev implicit_maml/learner_model.py, arxiv.org/abs/1909.04630
import copy

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector

torch.manual_seed(247)
model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
outer = torch.optim.Adam(model.parameters(), lr=3e-2)
lam = 1.0


def flat(gradients):
    return torch.cat([g.reshape(-1) for g in gradients])


def conjugate_gradients(product, b, steps=4):
    x, r = torch.zeros_like(b), b.clone()
    p, rr = r.clone(), r @ r
    for _ in range(steps):
        ap = product(p)
        alpha = rr / (p @ ap).clamp_min(1e-10)
        x, r = x + alpha * p, r - alpha * ap
        rr, before = r @ r, rr
        p = r + rr / before * p
    return x


for step in range(25):
    meta_grads, losses = [], []
    for _ in range(3):
        w = 0.2 * torch.randn(2, 1) + 1
        x, x_query = torch.randn(12, 2), torch.randn(12, 2)
        learner = copy.deepcopy(model)
        anchor = parameters_to_vector(model.parameters()).detach()
        inner = torch.optim.SGD(learner.parameters(), lr=0.1)
        for _ in range(5):
            distance = (parameters_to_vector(learner.parameters()) - anchor).square().sum()
            loss = (learner(x) - x @ w).square().mean() + 0.5 * lam * distance
            inner.zero_grad()
            loss.backward()
            inner.step()
        params = list(learner.parameters())
        train_grad = flat(torch.autograd.grad((learner(x) - x @ w).square().mean(), params, create_graph=True))
        query_loss = (learner(x_query) - x_query @ w).square().mean()
        v = flat(torch.autograd.grad(query_loss, params))

        def product(p, g=train_grad, params=params):
            return p + flat(torch.autograd.grad(g @ p, params, retain_graph=True)) / lam

        meta_grads.append(conjugate_gradients(product, v))
        losses.append(query_loss.item())
    outer.zero_grad()
    gradient = torch.stack(meta_grads).mean(0)
    for p, g in zip(model.parameters(), gradient.split([p.numel() for p in model.parameters()]), strict=True):
        p.grad = g.view_as(p)
    outer.step()
    if step % 6 == 0:
        print(step, sum(losses) / 3)
