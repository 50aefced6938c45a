# Gradients are clipped three times before one step: by value for the embedding, by norm for each of two parts.
# source: docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_value_.html,
# facebookresearch/DrQA drqa/reader/model.py (rows of the embedding are reset after each step)
import torch
from torch import nn

torch.manual_seed(75)
FIXED_ROWS = 5


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 8)
        self.register_buffer("fixed_embedding", self.embedding.weight[FIXED_ROWS:].detach().clone())
        self.doc_rnn = nn.GRU(8, 16, batch_first=True)
        self.start_attn = nn.Linear(16, 1)

    def forward(self, words):
        return self.start_attn(self.doc_rnn(self.embedding(words))[0]).squeeze(-1).log_softmax(1)


network = Reader()
optimizer = torch.optim.Adamax(network.parameters(), lr=1e-2)
for update in range(40):
    network.train()
    words = torch.randint(FIXED_ROWS, 30, (24, 9))
    where = torch.randint(0, 9, (24,))
    words[torch.arange(24), where] = torch.randint(0, FIXED_ROWS, (24,))
    loss = nn.functional.nll_loss(network(words), where)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(network.embedding.parameters(), 0.05)
    nn.utils.clip_grad_norm_(network.doc_rnn.parameters(), 10)
    nn.utils.clip_grad_norm_(network.start_attn.parameters(), 1)
    optimizer.step()
    with torch.no_grad():
        network.embedding.weight[FIXED_ROWS:] = network.fixed_embedding
    if update % 13 == 0:
        print(update, loss.item())
