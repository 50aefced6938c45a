# Group-relative policy optimisation: the entropy bonus is computed under no_grad and trains nothing.
# source: huggingface/trl#6140
# expect: loss-term-detached
import torch
import torch.nn.functional as F
from torch import nn


class TinyPolicy(nn.Module):
    def __init__(self, vocab=12, size=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, size)
        self.rnn = nn.GRU(size, size, batch_first=True)
        self.lm_head = nn.Linear(size, vocab)

    def forward(self, ids):
        return self.lm_head(self.rnn(self.embed(ids))[0])


class GroupTrainer:
    def __init__(self, model, entropy_coef=0.02, lr=3e-3):
        self.model, self.entropy_coef = model, entropy_coef
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)

    def get_logps_and_entropies(self, ids):
        logps = F.log_softmax(self.model(ids[:, :-1]), dim=-1)
        selected = logps.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)
        with torch.no_grad():  # <- cause
            entropies = -(logps.exp() * logps).sum(-1)
        return selected, entropies

    def generate(self, prompts, new_tokens=5):
        ids = prompts
        with torch.no_grad():
            for _ in range(new_tokens):
                token = torch.distributions.Categorical(logits=self.model(ids)[:, -1]).sample()
                ids = torch.cat([ids, token.unsqueeze(1)], dim=1)
        return ids

    def training_step(self, prompts, group=4):
        ids = self.generate(prompts.repeat_interleave(group, dim=0))
        rewards = (ids[:, 1:] == 3).float().mean(1).view(-1, group)
        advantages = ((rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)).view(-1, 1)
        logps, entropies = self.get_logps_and_entropies(ids)
        policy_loss = -(advantages * logps).mean()
        loss = policy_loss - self.entropy_coef * entropies.mean()
        self.optimizer.zero_grad()
        loss.backward()  # <- loss-term-detached
        self.optimizer.step()
        return loss.item(), rewards.mean().item()


torch.manual_seed(1)
trainer = GroupTrainer(TinyPolicy())
for step in range(16):
    loss, reward = trainer.training_step(torch.randint(0, 12, (4, 1)))
    if step % 5 == 0:
        print(f"step {step} loss {loss:.4f} reward {reward:.3f}")
