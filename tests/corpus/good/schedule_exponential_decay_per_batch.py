# A slow decay: the factor is 0.998 and is applied after every batch, as the learning rate of a recurrent model was in
# its paper; after all batches the rate is still at two thirds.
# source: pytorchbearer/torchbearer#146,
#   docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ExponentialLR.html
import torch
from torch import nn

torch.manual_seed(203)


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(2, 20, batch_first=True), nn.Linear(20, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


def batch(n=32, length=8):
    values = torch.rand(n, length)
    marks = torch.zeros(n, length).scatter_(1, torch.rand(n, length).topk(2).indices, 1.0)
    return torch.stack([values, marks], 2), (values * marks).sum(1, keepdim=True)


model = Adder()
optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.998)
for it in range(200):
    x, target = batch()
    loss = nn.functional.mse_loss(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    decay.step()
    if it % 40 == 0:
        print(it, f"{loss.item():.4f}", f"{decay.get_last_lr()[0]:.5f}")
