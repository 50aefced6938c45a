# Evolution strategies: no loss.backward() at all; the reward of random perturbations gives an estimate of the gradient,
# which is written into .grad for an ordinary optimizer.
# source: openai/evolution-strategies-starter es_distributed/es.py, arxiv.org/abs/1703.03864
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

torch.manual_seed(263)
policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
policy.requires_grad_(False)
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-2)
sigma, pairs = 0.1, 16
states, wanted = torch.randn(64, 4), torch.tensor([[1.0, 0.0, -1.0, 0.5], [0.0, 1.0, 0.5, -0.5]])


def fitness(weights):
    vector_to_parameters(weights, policy.parameters())
    return -(policy(states) - states @ wanted.T).square().mean()


for generation in range(80):
    center = parameters_to_vector(policy.parameters()).clone()
    noise = torch.randn(pairs, len(center))
    scores = torch.tensor([[fitness(center + sigma * e), fitness(center - sigma * e)] for e in noise])
    ranks = scores.flatten().argsort().argsort().float().view_as(scores) / (2 * pairs - 1) - 0.5
    estimate = ((ranks[:, 0] - ranks[:, 1]) @ noise) / (pairs * sigma)
    vector_to_parameters(center, policy.parameters())
    offset = 0
    for p in policy.parameters():
        p.grad = -estimate[offset : offset + p.numel()].view_as(p)
        offset += p.numel()
    optimizer.step()
    optimizer.zero_grad()
    if generation % 16 == 0:
        print(generation, scores.mean().item())
