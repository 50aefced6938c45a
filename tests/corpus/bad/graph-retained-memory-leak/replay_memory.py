# Q-learning whose replay memory stores the network's value estimate with its whole graph beside each transition.
# source: oxwhirl/pymarl#73
# expect: graph-retained-memory-leak
import random
from collections import deque

import torch
from torch import nn
from torch.optim import RMSprop


class Agent:
    def __init__(self, n_obs=4, n_actions=3):
        self.q = nn.Sequential(nn.Linear(n_obs, 24), nn.ReLU(), nn.Linear(24, n_actions))
        self.memory = deque(maxlen=500)
        self.optimizer = RMSprop(self.q.parameters(), lr=5e-4)
        self.step_count = 0

    def act(self, obs):
        values = self.q(obs)  # <- cause
        action = int(values.argmax()) if random.random() > 0.2 else random.randrange(3)
        return action, values[action]  # <- cause

    def learn(self, batch_size=8):
        batch = random.sample(self.memory, batch_size)
        obs, action, reward, nxt, _value = zip(*batch, strict=True)
        with torch.no_grad():
            target = torch.tensor(reward) + 0.9 * self.q(torch.stack(nxt)).amax(1)
        chosen = self.q(torch.stack(obs)).gather(1, torch.tensor(action).unsqueeze(1)).squeeze(1)
        loss = nn.functional.smooth_l1_loss(chosen, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


random.seed(2)
torch.manual_seed(2)
agent = Agent()
obs = torch.randn(4)
for _step in range(40):
    action, value = agent.act(obs)
    nxt = 0.8 * obs + 0.2 * torch.randn(4)
    agent.memory.append((obs, action, float(nxt[action]), nxt, value))  # <- graph-retained-memory-leak, cause
    obs = nxt
    if len(agent.memory) >= 16:
        loss = agent.learn()
print("loss", loss)
