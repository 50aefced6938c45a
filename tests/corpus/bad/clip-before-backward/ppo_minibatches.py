# PPO minibatch updates where clip_grad_norm_ stands one line above backward.
# source: a common pattern; documented in https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping
# expect: clip-before-backward
import torch
import torch.nn as nn
from torch.distributions.categorical import Categorical


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
        self.actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x).squeeze(-1)


torch.manual_seed(3)
agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
for update in range(3):
    b_obs = torch.randn(64, 4)
    with torch.no_grad():
        b_actions, b_logprobs, _, b_values = agent.get_action_and_value(b_obs)
    b_returns = (b_actions == (b_obs[:, 0] > 0).long()).float() * 4
    b_advantages = b_returns - b_values
    for _epoch in range(2):
        for mb in torch.randperm(64).split(16):
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_actions[mb])
            ratio = (newlogprob - b_logprobs[mb]).exp()
            adv = b_advantages[mb]
            pg_loss = torch.max(-adv * ratio, -adv * ratio.clamp(0.8, 1.2)).mean()
            v_loss = 0.5 * ((newvalue - b_returns[mb]) ** 2).mean()
            loss = pg_loss - 0.01 * entropy.mean() + 0.5 * v_loss

            optimizer.zero_grad()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)  # <- clip-before-backward, cause
            loss.backward()
            optimizer.step()
    print(f"update {update} return {b_returns.mean().item():.3f}")
