# Actor and value net in one agent: the update of the value net clips the actor by value, after the actor's own update.
# source: none (a common mistake, written small)
# expect: clip-without-effect
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.actor, self.value = nn.Linear(4, 2), nn.Linear(4, 1)
        self.actor_opt = torch.optim.RMSprop(self.actor.parameters(), lr=1e-3)
        self.value_opt = torch.optim.RMSprop(self.value.parameters(), lr=1e-3)

    def learn(self, obs, returns):
        advantage = returns - self.value(obs)
        log_probs = self.actor(obs).log_softmax(-1)[:, :1]
        self.actor_opt.zero_grad()
        (-(log_probs * advantage.detach()).mean()).backward()
        self.actor_opt.step()
        self.value_opt.zero_grad()
        advantage.square().mean().backward()
        nn.utils.clip_grad_value_(self.actor.parameters(), 0.1)  # <- clip-without-effect, cause
        self.value_opt.step()


torch.manual_seed(2)
agent = Agent()
for obs in torch.randn(10, 32, 4):
    agent.learn(obs, obs[:, :1] * 5)
