# A policy trainer with separate forward_backward and optim_step calls; the former clears what the last call left.
# source: pytorch/torchtitan#3575
# expect: zero-grad-in-micro-batch
import torch
from torch import nn
from torch.distributions import Categorical


class PolicyTrainer:
    def __init__(self, n_obs=6, n_act=4):
        self.model = nn.Sequential(nn.Linear(n_obs, 32), nn.Tanh(), nn.Linear(32, n_act))
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=3e-3)
        self.policy_version = 0

    def forward_backward(self, obs, actions, advantages, total):
        self.model.zero_grad()  # <- zero-grad-in-micro-batch, cause
        logp = Categorical(logits=self.model(obs)).log_prob(actions)
        loss = -(logp * advantages).sum() / total
        loss.backward()
        return loss.detach()

    def optim_step(self):
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.policy_version += 1


torch.manual_seed(8)
trainer = PolicyTrainer()
for _ in range(10):
    obs = torch.randn(48, 6)
    with torch.no_grad():
        actions = Categorical(logits=trainer.model(obs)).sample()
    advantages = (actions == obs[:, :4].argmax(1)).float() - 0.25
    losses = []
    for micro in torch.arange(48).split(16):
        losses.append(trainer.forward_backward(obs[micro], actions[micro], advantages[micro], total=48))
    trainer.optim_step()
print("last loss", torch.stack(losses).sum().item())
