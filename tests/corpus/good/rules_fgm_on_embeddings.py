# Fast gradient method for text: the embedding is moved, a second loss adds its own on purpose, then it is put back.
# source: https://arxiv.org/abs/1605.07725 (adversarial training for text)
import torch
from torch import nn

torch.manual_seed(9)
model = nn.Sequential(nn.Embedding(30, 8), nn.Flatten(), nn.Linear(40, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
embedding = model[0].weight
for _ in range(20):
    words = torch.randint(0, 30, (16, 5))
    labels = (words.sum(1) > 72).long()
    loss = nn.functional.cross_entropy(model(words), labels)
    loss.backward()
    backup = embedding.data.clone()
    embedding.data.add_(0.5 * embedding.grad / (embedding.grad.norm() + 1e-12))
    nn.functional.cross_entropy(model(words), labels).backward()
    embedding.data = backup
    optimizer.step()
    optimizer.zero_grad()
print(loss.item())
