# A language model whose embedding is enlarged for new tokens after the optimizer was built.
# source: huggingface/transformers#3532
# expect: optimizer-holds-stale-params
import torch
from torch import nn
from torch.optim import AdamW


class TinyLM(nn.Module):
    def __init__(self, vocab=20, dim=12):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.norm = nn.LayerNorm(dim)

    def resize_token_embeddings(self, new_size):
        new = nn.Embedding(new_size, self.wte.embedding_dim)
        with torch.no_grad():
            new.weight[: self.wte.num_embeddings] = self.wte.weight
        self.wte = new  # <- cause

    def forward(self, ids):
        hidden, _ = self.rnn(self.wte(ids))
        return self.norm(hidden) @ self.wte.weight.T


def train(model, train_dataset, epochs=3):
    params = [{"params": model.parameters(), "weight_decay": 0.01}]
    optimizer = AdamW(params, lr=5e-3, eps=1e-8)  # <- optimizer-holds-stale-params, cause
    model.resize_token_embeddings(24)  # <- cause
    model.zero_grad()
    for epoch in range(epochs):
        for batch in torch.utils.data.DataLoader(train_dataset, batch_size=8, shuffle=True):
            model.train()
            logits = model(batch[:, :-1])
            loss = nn.functional.cross_entropy(logits.reshape(-1, 24), batch[:, 1:].reshape(-1))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            model.zero_grad()
        print(f"epoch {epoch} loss {loss.item():.4f}")


torch.manual_seed(0)
train(TinyLM(), torch.randint(0, 24, (40, 7)))
