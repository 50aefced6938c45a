# Group-relative policy optimisation: several answers for each prompt, advantages relative to the group, old
# log-probabilities detached, and a penalty towards a frozen reference policy; the reward needs no gradient.
# source: huggingface/trl trl/trainer/grpo_trainer.py
import copy

import torch
from torch import nn

torch.manual_seed(273)
vocabulary, length, group = 8, 4, 6


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(vocabulary, 16), nn.GRU(16, 24, batch_first=True)
        self.out = nn.Linear(24, vocabulary)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0]).log_softmax(-1)


@torch.no_grad()
def generate(policy, prompts):
    tokens = prompts
    for _ in range(length):
        tokens = torch.cat([tokens, torch.multinomial(policy(tokens)[:, -1].exp(), 1)], 1)
    return tokens


def per_token_logps(policy, tokens):
    return policy(tokens[:, :-1]).gather(-1, tokens[:, 1:, None]).squeeze(-1)[:, -length:]


policy = Policy()
reference = copy.deepcopy(policy).requires_grad_(False)
optimizer = torch.optim.AdamW(policy.parameters(), lr=5e-3)
for step in range(40):
    prompts = torch.randint(0, vocabulary, (8, 1)).repeat_interleave(group, 0)
    tokens = generate(policy, prompts)
    rewards = (tokens[:, 1:] == (tokens[:, :-1] + 1) % vocabulary).float().mean(1)
    grouped = rewards.view(-1, group)
    advantages = ((grouped - grouped.mean(1, keepdim=True)) / (grouped.std(1, keepdim=True) + 1e-4)).view(-1, 1)
    old = None
    for _ in range(2):
        logps = per_token_logps(policy, tokens)
        old = logps.detach() if old is None else old
        ratio = (logps - old).exp()
        surrogate = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        drift = per_token_logps(reference, tokens) - logps
        loss = -(surrogate - 0.02 * (drift.exp() - drift - 1)).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
    if step % 10 == 9:
        print(step, f"reward {rewards.mean().item():.3f}")
