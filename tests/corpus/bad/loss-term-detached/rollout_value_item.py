# Advantage estimation from scratch: the rollout stores value.item(), so the value loss has nothing to train.
# source: jsboige/CoursIA#15256
# expect: loss-term-detached
import torch
import torch.nn as nn
import torch.nn.functional as F


class ActorCritic(nn.Module):
    def __init__(self, n_obs=4, n_act=3, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_obs, hidden), nn.Tanh())
        self.policy, self.value = nn.Linear(hidden, n_act), nn.Linear(hidden, 1)

    def forward(self, obs):
        h = self.body(obs)
        return self.policy(h), self.value(h).squeeze(-1)


def rollout(model, steps=24):
    log_probs, values, rewards = [], [], []
    obs = torch.randn(4)
    for _ in range(steps):
        logits, value = model(obs)
        dist = torch.distributions.Categorical(logits=logits)
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        values.append(value.item())  # <- cause
        rewards.append(1.0 if action.item() == obs[:3].argmax().item() else 0.0)
        obs = 0.5 * obs + torch.randn(4)
    return torch.stack(log_probs), torch.tensor(values), rewards  # <- cause


def generalized_advantages(rewards, values, gamma=0.9, lam=0.95):
    advantages, running, next_value = [], 0.0, 0.0
    for reward, value in zip(reversed(rewards), reversed(values.tolist()), strict=True):
        running = reward + gamma * next_value - value + gamma * lam * running
        next_value = value
        advantages.insert(0, running)
    return torch.tensor(advantages)


torch.manual_seed(0)
model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(12):
    log_probs, values, rewards = rollout(model)
    advantages = generalized_advantages(rewards, values)
    returns = advantages + values.detach()
    policy_loss = -(log_probs * advantages).mean()
    value_loss = F.mse_loss(values, returns)
    optimizer.zero_grad()
    (policy_loss + 0.5 * value_loss).backward()  # <- loss-term-detached
    optimizer.step()
    if epoch % 4 == 0:
        print(f"epoch {epoch} reward {sum(rewards) / len(rewards):.3f} value loss {value_loss.item():.3f}")
