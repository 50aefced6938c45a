# A sparse embedding has an optimizer of its own beside the dense one, and both are cleared by one model.zero_grad().
# source: kimiyoung/transformer-xl pytorch/train.py (--sample_softmax)
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class LM(nn.Module):
    def __init__(self, vocab=50, dim=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, sparse=True)
        self.mix = nn.Sequential(nn.Linear(3 * dim, 32), nn.ReLU())
        self.out = nn.Linear(32, vocab)

    def forward(self, x):
        return self.out(self.mix(self.emb(x).flatten(1)))


torch.manual_seed(11)
text = torch.arange(600) * 7 % 50
model = LM()
dense_params, sparse_params = [], []
for param in model.parameters():
    if param is model.emb.weight:
        sparse_params.append(param)
    else:
        dense_params.append(param)
optimizer_sparse = optim.SparseAdam(sparse_params, lr=1e-2)
optimizer = optim.Adam(dense_params, lr=1e-2)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, 30, eta_min=1e-4)
scheduler_sparse = optim.lr_scheduler.CosineAnnealingLR(optimizer_sparse, 30, eta_min=1e-4)

train_step = 0
for _epoch in range(2):
    for batch in torch.randperm(597).split(40):
        model.zero_grad()
        window = torch.stack([text[batch], text[batch + 1], text[batch + 2]], 1)
        loss = F.cross_entropy(model(window), text[batch + 3])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(dense_params, 0.25)
        optimizer.step()
        optimizer_sparse.step()
        train_step += 1
        scheduler.step()
        scheduler_sparse.step()
        if train_step % 10 == 0:
            print(train_step, f"{loss.item():.3f} lr {optimizer.param_groups[0]['lr']:.4f}")
