# Actor and critic with one loss, one backward and an optimizer each; the advantage is detached for the actor.
# source: none (a common pattern, written small)
import torch
from torch import nn
from torch.distributions import Categorical


class Agent:
    def __init__(self):
        self.actor = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
        self.critic = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
        self.optimizers = [torch.optim.Adam(net.parameters(), lr=2e-3) for net in (self.actor, self.critic)]

    def update(self, states, rewards_of):
        policy = Categorical(logits=self.actor(states))
        actions = policy.sample()
        advantage = rewards_of(states, actions) - self.critic(states).squeeze(1)
        actor_loss = -(policy.log_prob(actions) * advantage.detach()).mean() - 0.01 * policy.entropy().mean()
        loss = actor_loss + 0.5 * advantage.square().mean()
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.item()


torch.manual_seed(17)
agent = Agent()
losses = [agent.update(s, lambda state, a: (state[:, 0] * (2 * a - 1)).sign()) for s in torch.randn(60, 16, 4)]
print(losses[0], losses[-1])
