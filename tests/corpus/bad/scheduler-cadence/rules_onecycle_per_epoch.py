# A one-cycle schedule planned in batches, stepped once an epoch: the warm-up never ends.
# source: https://github.com/ageron/handson-mlp/issues/28, https://github.com/pytorch/pytorch/issues/65417
# expect: scheduler-cadence
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
x = torch.randn(96, 5)
loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8)
net = nn.Linear(5, 2)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-2, epochs=5, steps_per_epoch=len(loader))
for epoch in range(5):
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(net(inputs), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()  # <- scheduler-cadence, cause
    print(epoch, loss.item(), sched.get_last_lr())
