# A homework's training loop adds the loss tensor to train_loss between two log lines that never reset it.
# source: pai4451/ML2021#2
# expect: graph-retained-memory-leak
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class QADataset(Dataset):
    def __init__(self, n):
        self.tokens = torch.randint(0, 60, (n, 12), generator=torch.Generator().manual_seed(3))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, k):
        return self.tokens[k], int(self.tokens[k].argmax())


class SpanModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(60, 16)
        self.enc = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.start = nn.Linear(16, 1)

    def forward(self, ids):
        return self.start(self.enc(self.emb(ids))).squeeze(-1)


if __name__ == "__main__":
    torch.manual_seed(3)
    model = SpanModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(QADataset(80), batch_size=4, shuffle=True, num_workers=1)
    step, logging_step, train_loss = 1, 5, 0
    for data, position in loader:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = model(data)
        loss = nn.functional.cross_entropy(output.float(), position)
        train_loss += loss  # <- graph-retained-memory-leak, cause
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % logging_step == 0:
            print(f"Step {step} | mean loss = {train_loss.item() / step:.3f}")
        step += 1
