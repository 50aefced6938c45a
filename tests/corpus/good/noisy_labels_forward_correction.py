# Noisy labels with a known noise: the softmax goes through the transition matrix of the labels, and the negative log of
# the result is the loss; at test time the plain softmax is used.
# source: giorgiop/loss-correction loss.py (forward), arxiv.org/abs/1609.03683
import torch
from torch import nn

torch.manual_seed(213)
flip = torch.tensor([[0.7, 0.3, 0.0], [0.0, 0.7, 0.3], [0.3, 0.0, 0.7]])
x = torch.randn(400, 4)
clean = x[:, :3].argmax(1)
noisy = torch.multinomial(flip[clean], 1).squeeze(1)
model = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def forward_corrected(logits, labels):
    probabilities = torch.softmax(logits, dim=1) @ flip
    return nn.functional.nll_loss(torch.log(probabilities.clamp_min(1e-7)), labels)


for epoch in range(8):
    total = 0.0
    for batch in torch.randperm(320).split(40):
        loss = forward_corrected(model(x[batch]), noisy[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    with torch.no_grad():
        right = (model(x[320:]).softmax(1).argmax(1) == clean[320:]).float().mean()
    print(epoch, f"loss {total / 320:.4f} accuracy on clean labels {right:.3f}")
