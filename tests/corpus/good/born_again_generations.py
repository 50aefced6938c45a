# Born-again networks: each generation is a new student with a new optimizer, taught by the one before; the same name is
# bound to another model and another optimizer on every turn of the outer loop.
# source: nocotan/born_again_neuralnet train.py, arxiv.org/abs/1805.04770
import torch
from torch import nn

torch.manual_seed(275)
x = torch.randn(240, 8)
y = (x[:, :4].square().sum(1) > 3.5).long()
teacher = None
for generation in range(3):
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _epoch in range(8):
        for rows in torch.randperm(240).split(24):
            logits = model(x[rows])
            loss = nn.functional.cross_entropy(logits, y[rows])
            if teacher is not None:
                with torch.no_grad():
                    soft = teacher(x[rows]).softmax(1)
                loss = 0.5 * loss + 0.5 * nn.functional.cross_entropy(logits, soft)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    teacher = model.eval().requires_grad_(False)
    print(f"generation {generation} loss {loss.item():.4f}")
