# Actor and critic share one optimizer and one backward, but each half of the update function ends in a step.
# source: a common pattern; documented in https://docs.pytorch.org/docs/stable/optim.html#taking-an-optimization-step
# expect: double-step
import torch
from torch import nn
from torch.distributions import Normal
from torch.optim import RMSprop


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 24), nn.Tanh())
        self.mu, self.value = nn.Linear(24, 1), nn.Linear(24, 1)
        self.log_std = nn.Parameter(torch.zeros(1))

    def forward(self, obs):
        h = self.body(obs)
        return Normal(self.mu(h), self.log_std.exp()), self.value(h).squeeze(-1)


torch.manual_seed(3)
agent = ActorCritic()
optimizer = RMSprop(agent.parameters(), lr=7e-4, alpha=0.99)
target = torch.tensor([0.5, -0.2, 0.1, 0.3])

for update in range(15):
    obs = torch.randn(32, 4)
    dist, value = agent(obs)
    action = dist.sample()
    reward = -(action.squeeze(-1) - obs @ target).abs()
    advantage = reward - value

    value_loss = advantage.pow(2).mean()
    policy_loss = -(dist.log_prob(action).squeeze(-1) * advantage.detach()).mean()

    optimizer.zero_grad()
    (policy_loss + 0.5 * value_loss).backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()  # actor  # <- cause
    optimizer.step()  # critic  # <- double-step, cause
    if update % 5 == 0:
        print(f"update {update} reward {reward.mean().item():.3f}")
