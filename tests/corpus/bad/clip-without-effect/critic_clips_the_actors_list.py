# Actor and critic by functions: each has its update, and both clip the list of parameters that stands at the top.
# source: none (a common mistake, written small)
# expect: clip-without-effect
import torch
from torch import nn

torch.manual_seed(9)
actor = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1), nn.Tanh())
critic = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
params = list(actor.parameters())
opt_actor, opt_critic = torch.optim.Adam(params, lr=1e-3), torch.optim.Adam(critic.parameters(), lr=1e-3)


def value(state, action):
    return critic(torch.cat([state, action], 1))


def update_critic(state, action, returns):
    opt_critic.zero_grad()
    nn.functional.mse_loss(value(state, action), returns).backward()
    nn.utils.clip_grad_norm_(params, 0.5)  # <- clip-without-effect, cause
    opt_critic.step()


def update_actor(state):
    opt_actor.zero_grad()
    (-value(state, actor(state)).mean()).backward()
    nn.utils.clip_grad_norm_(params, 0.5)
    opt_actor.step()


for state in torch.randn(20, 16, 4):
    with torch.no_grad():
        action = actor(state)
    update_critic(state, action, 10 * state[:, :1])
    update_actor(state)
