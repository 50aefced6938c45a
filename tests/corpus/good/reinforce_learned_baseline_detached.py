# REINFORCE with a learned baseline: the same values are detached in the policy's term and attached in their own, and
# both terms plus an entropy bonus make one loss for one optimizer.
# source: pytorch/examples reinforcement_learning/reinforce.py, with the baseline of arxiv.org/abs/1602.01783
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(230)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
baseline = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*policy.parameters(), *baseline.parameters()], lr=1e-2)
gain = torch.randn(4, 3)

for episode in range(120):
    state, log_probs, values, rewards, entropy = torch.randn(16, 4), [], [], [], 0.0
    for _ in range(4):
        dist = Categorical(logits=policy(state))
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        values.append(baseline(state).squeeze(-1))
        rewards.append((state @ gain).gather(1, action[:, None]).squeeze(1))
        entropy = entropy + dist.entropy().mean()
        state = (0.7 * state + 0.3 * torch.randn_like(state)).detach()
    returns, running = [], torch.zeros(16)
    for reward in reversed(rewards):
        running = reward + 0.9 * running
        returns.insert(0, running)
    returns, values = torch.stack(returns), torch.stack(values)
    advantage = returns - values.detach()
    policy_loss = -(torch.stack(log_probs) * advantage).mean()
    value_loss = nn.functional.mse_loss(values, returns)
    loss = policy_loss + 0.5 * value_loss - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 30 == 0:
        print(episode, f"return {returns[0].mean().item():.3f} value loss {value_loss.item():.3f}")
