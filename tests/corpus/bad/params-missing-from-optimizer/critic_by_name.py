# PPO with parameters chosen by name: the value network is called critic, the filter looks for value_model.
# source: huggingface/trl#2453
# expect: params-missing-from-optimizer
# severity: hint (a part of the model may be meant to stay as it is)
# cause: not found (a helper picks the parameters by their names)
import torch
from torch import nn
from torch.distributions import Categorical


class PolicyAndValueWrapper(nn.Module):
    def __init__(self, policy, critic):
        super().__init__()
        self.policy, self.critic = policy, critic

    def forward(self, obs):
        return Categorical(logits=self.policy(obs)), self.critic(obs).squeeze(-1)


def trainable(model, prefixes=("policy.", "value_model.")):  # <- cause
    return [p for name, p in model.named_parameters() if name.startswith(prefixes)]


def collect(model, n=64):
    obs = torch.randn(n, 5)
    with torch.no_grad():
        dist, values = model(obs)
        actions = dist.sample()
    rewards = (actions == obs[:, :3].argmax(1)).float()
    return obs, actions, dist.log_prob(actions), rewards - values, rewards


torch.manual_seed(1)
policy = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 3))
critic = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 1))
model = PolicyAndValueWrapper(policy, critic)
optimizer = torch.optim.Adam(trainable(model), lr=3e-3)  # <- params-missing-from-optimizer
for update in range(6):
    obs, actions, old_logprob, advantage, returns = collect(model)
    for _ in range(2):
        for mb in torch.randperm(64).split(16):
            dist, value = model(obs[mb])
            ratio = (dist.log_prob(actions[mb]) - old_logprob[mb]).exp()
            pg_loss = -torch.min(ratio * advantage[mb], ratio.clamp(0.8, 1.2) * advantage[mb]).mean()
            vf_loss = 0.5 * (value - returns[mb]).square().mean()
            loss = pg_loss + 0.1 * vf_loss - 0.01 * dist.entropy().mean()
            model.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"update {update} reward {returns.mean().item():.3f} value loss {vf_loss.item():.4f}")
