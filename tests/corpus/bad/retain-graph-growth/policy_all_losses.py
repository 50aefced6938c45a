# REINFORCE with a linear policy in float64: after every episode the sum of all losses so far is backpropagated.
# source: pytorch/pytorch#40005
# expect: retain-graph-growth
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(3)
policy = nn.Linear(4, 3, dtype=torch.float64)
opt = torch.optim.RMSprop(policy.parameters(), lr=1e-3)
goal = torch.randn(4, 3, dtype=torch.float64)


class Rollouts:
    def __init__(self):
        self.losses = []

    def episode(self, length=8):
        obs = torch.randn(length, 4, dtype=torch.float64)
        dist = Categorical(logits=policy(obs))
        action = dist.sample()
        reward = (obs @ goal).gather(1, action.unsqueeze(1)).squeeze(1)
        self.losses.append(-(dist.log_prob(action) * reward).mean())
        return reward.mean().item()


rollouts = Rollouts()
episode = 0
while episode < 14:
    reward = rollouts.episode()
    loss = torch.stack(rollouts.losses).mean()  # <- cause
    opt.zero_grad()
    loss.backward(retain_graph=True)  # <- retain-graph-growth, cause
    opt.step()  # <- cause
    if episode % 4 == 0:
        print(f"episode {episode} reward {reward:.3f}")
    episode += 1
