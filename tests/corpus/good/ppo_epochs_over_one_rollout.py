# PPO: a rollout under no_grad with the agent in train mode, then several epochs over the same minibatches, with the
# learning rate annealed by hand and the epochs cut short when the policy has moved too far.
# source: vwxyzjn/cleanrl cleanrl/ppo.py
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions.categorical import Categorical


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
        self.actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        action = probs.sample() if action is None else action
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


torch.manual_seed(64)
agent = Agent()
optimizer = optim.Adam(agent.parameters(), lr=5e-3, eps=1e-5)
num_iterations, num_steps, num_envs = 6, 16, 8
obs = torch.zeros(num_steps, num_envs, 4)
actions, logprobs, rewards, values = (torch.zeros(num_steps, num_envs) for _ in range(4))

for iteration in range(1, num_iterations + 1):
    optimizer.param_groups[0]["lr"] = (1.0 - (iteration - 1.0) / num_iterations) * 5e-3
    for step in range(num_steps):
        obs[step] = torch.randn(num_envs, 4)
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(obs[step])
            values[step] = value.flatten()
        actions[step], logprobs[step] = action, logprob
        rewards[step] = ((obs[step].sum(1) > 0) == (action == 1)).float()
    advantages = (rewards - values).flatten()
    flat = obs.reshape(-1, 4), actions.flatten(), logprobs.flatten(), rewards.flatten()
    for _epoch in range(4):
        for mb_inds in torch.randperm(num_steps * num_envs).split(32):
            b_obs, b_actions, b_logprobs, b_returns = (v[mb_inds] for v in flat)
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs, b_actions)
            logratio = newlogprob - b_logprobs
            ratio = logratio.exp()
            with torch.no_grad():
                approx_kl = ((ratio - 1) - logratio).mean()
            adv = advantages[mb_inds]
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            pg_loss = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 0.8, 1.2)).mean()
            v_loss = 0.5 * ((newvalue.view(-1) - b_returns) ** 2).mean()
            loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        if approx_kl > 0.05:
            break
    print(iteration, f"reward {rewards.mean().item():.3f} kl {approx_kl.item():.4f}")
