# Policy updates once there is enough memory, where the update itself makes Adam: its averages live for one step.
# source: ikostrikov/pytorch-a2c-ppo-acktr-gail a2c_ppo_acktr/algo/ppo.py, with the optimizer moved into the update
# expect: optimizer-remade
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(14)
policy = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 3))


def update(observations, actions, advantages):
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)  # <- optimizer-remade, cause
    loss = -(Categorical(logits=policy(observations)).log_prob(actions) * advantages).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


memory = []
for episode in range(24):
    observations = torch.randn(16, 6)
    memory.append(observations)
    if len(memory) >= 2:
        observations = torch.cat(memory[-2:])
        actions = Categorical(logits=policy(observations)).sample()
        loss = update(observations, actions, (actions == observations[:, :3].argmax(1)).float() - 0.3)
        if episode % 8 == 7:
            print(f"episode {episode} loss {loss:.4f}")
