# A language model's mixture of softmaxes: probabilities are mixed, and their logarithm is what nll_loss takes. Softmax,
# sum and log before the loss are right here, since nll_loss has no softmax of its own.
# source: zihangdai/mos model.py
import torch
from torch import nn
from torch.nn import functional as F


class MoS(nn.Module):
    def __init__(self, n_tokens=18, dim=16, n_experts=3):
        super().__init__()
        self.n_experts, self.n_tokens = n_experts, n_tokens
        self.embed, self.rnn = nn.Embedding(n_tokens, dim), nn.GRU(dim, dim, batch_first=True)
        self.prior = nn.Linear(dim, n_experts, bias=False)
        self.latent, self.decoder = nn.Linear(dim, n_experts * dim), nn.Linear(dim, n_tokens)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        pi = self.prior(hidden).softmax(-1).unsqueeze(-1)
        latent = torch.tanh(self.latent(hidden)).unflatten(-1, (self.n_experts, -1))
        prob = (pi * self.decoder(latent).softmax(-1)).sum(-2)
        return prob.add(1e-8).log()


torch.manual_seed(212)
model = MoS()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
start = torch.randint(0, 18, (64, 1))
text = (start + torch.arange(10) * (1 + start % 2)) % 18
for step in range(60):
    batch = text[torch.randint(0, 64, (16,))]
    log_prob = model(batch[:, :-1])
    loss = F.nll_loss(log_prob.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    if step % 15 == 0:
        print(step, loss.item(), "perplexity", loss.exp().item())
