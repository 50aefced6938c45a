# Two networks teach each other: each has its own optimizer, its own cross-entropy on logits, and a divergence from the
# softmax of the other, detached; both forwards come before both updates.
# source: chxy95/Deep-Mutual-Learning trainer.py, arxiv.org/abs/1706.00384
import torch
from torch import nn
from torch.nn.functional import cross_entropy, kl_div

torch.manual_seed(274)
models = [nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 4)) for width in (24, 48)]
optimizers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9, nesterov=True) for m in models]
schedulers = [torch.optim.lr_scheduler.StepLR(o, step_size=4, gamma=0.1) for o in optimizers]
x = torch.randn(320, 10)
y = (x @ torch.randn(10, 4)).argmax(1)
for epoch in range(6):
    for rows in torch.randperm(320).split(32):
        outputs = [model(x[rows]) for model in models]
        for i, optimizer in enumerate(optimizers):
            peer = outputs[1 - i].detach()
            agreement = kl_div(outputs[i].log_softmax(1), peer.softmax(1), reduction="batchmean")
            loss = cross_entropy(outputs[i], y[rows]) + agreement
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for scheduler in schedulers:
        scheduler.step()
    print(epoch, f"loss of the second {loss.item():.4f} divergence {agreement.item():.4f}")
