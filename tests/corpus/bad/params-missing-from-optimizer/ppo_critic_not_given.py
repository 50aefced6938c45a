# PPO with one loss for two nets: the value loss is part of it, but the optimizer was given the actor alone.
# source: vwxyzjn/cleanrl ppo.py, with the mistake put in
# expect: params-missing-from-optimizer
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(1)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
        self.actor = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


agent = Agent()
optimizer = torch.optim.Adam(agent.actor.parameters(), lr=2.5e-4, eps=1e-5)  # <- params-missing-from-optimizer, cause
for update in range(5):
    with torch.no_grad():
        b_obs = torch.randn(64, 4)
        b_actions, b_logprobs, _, b_values = agent.get_action_and_value(b_obs)
        b_returns = (b_actions == (b_obs[:, 0] > 0)).float()
        b_advantages = b_returns - b_values.flatten()
    for b_inds in torch.randperm(64).split(16):
        _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[b_inds], b_actions[b_inds])
        ratio = (newlogprob - b_logprobs[b_inds]).exp()
        advantages = b_advantages[b_inds]
        pg_loss = torch.max(-advantages * ratio, -advantages * ratio.clamp(0.8, 1.2)).mean()
        v_loss = 0.5 * (newvalue.view(-1) - b_returns[b_inds]).square().mean()
        loss = pg_loss - 0.01 * entropy.mean() + 0.5 * v_loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
    print(update, v_loss.item())
