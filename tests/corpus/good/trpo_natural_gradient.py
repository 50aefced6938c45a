# TRPO: conjugate gradients on Fisher-vector products (autograd.grad twice), a line search under no_grad, and the new
# weights copied in by hand: no optimizer and no backward at all for the policy. The critic learns by Adam.
# source: ikostrikov/pytorch-trpo trpo.py
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

torch.manual_seed(26)
policy = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
value = nn.Linear(3, 1)
value_opt = torch.optim.Adam(value.parameters(), lr=1e-2)


def kl(states, old):
    new = torch.log_softmax(policy(states), 1)
    return (old.exp() * (old - new)).sum(1).mean()


def flat_grad(y, **kw):
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(y, list(policy.parameters()), **kw)])


def conjugate_gradients(avp, b, n=8):
    x, r, p = torch.zeros_like(b), b.clone(), b.clone()
    rdotr = r @ r
    for _ in range(n):
        z = avp(p)
        alpha = rdotr / (p @ z)
        x += alpha * p
        r -= alpha * z
        new = r @ r
        p = r + new / rdotr * p
        rdotr = new
    return x


for it in range(10):
    states = torch.randn(64, 3)
    with torch.no_grad():
        dist = torch.distributions.Categorical(logits=policy(states))
        actions = dist.sample()
        old = torch.log_softmax(policy(states), 1)
        rewards = (actions == (states[:, 0] > 0)).float()
    value_loss = (value(states).squeeze(1) - rewards).pow(2).mean()
    value_opt.zero_grad()
    value_loss.backward()
    value_opt.step()
    advantage = (rewards - value(states).squeeze(1)).detach()

    def surrogate(states=states, old=old, actions=actions, advantage=advantage):
        ratio = (torch.log_softmax(policy(states), 1) - old).exp().gather(1, actions[:, None]).squeeze(1)
        return -(ratio * advantage).mean()

    def fisher(v, states=states, old=old):
        return flat_grad((flat_grad(kl(states, old), create_graph=True) * v).sum()) + 0.1 * v

    loss_grad = flat_grad(surrogate())
    step = conjugate_gradients(fisher, -loss_grad)
    full = step * torch.sqrt(2 * 0.02 / (step @ fisher(step)))
    before, theta = surrogate().item(), parameters_to_vector(policy.parameters()).detach()
    with torch.no_grad():
        for fraction in (1.0, 0.5, 0.25, 0.0):
            vector_to_parameters(theta + fraction * full, policy.parameters())
            if surrogate().item() < before and kl(states, old) < 0.03:
                break
    print(it, f"reward {rewards.mean().item():.2f}")
