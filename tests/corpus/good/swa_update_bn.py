# Stochastic weight averaging: the averaged model gets its BatchNorm statistics from a pass over the training data in
# train mode with no loss at all, and the scheduler is exchanged in the middle.
# source: docs.pytorch.org/docs/stable/optim.html (Stochastic Weight Averaging)
import torch
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(56)
x = torch.randn(128, 5)
loader = DataLoader(TensorDataset(x, x.pow(2).sum(1, keepdim=True)), batch_size=32, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(5, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
loss_fn = torch.nn.MSELoss()
swa_model = AveragedModel(model)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
swa_start = 6
swa_scheduler = SWALR(optimizer, swa_lr=0.01, anneal_epochs=2)

for epoch in range(12):
    for inp, target in loader:
        optimizer.zero_grad()
        loss_fn(model(inp), target).backward()
        optimizer.step()
    if epoch > swa_start:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()

update_bn(loader, swa_model)
swa_model.eval()
with torch.no_grad():
    print(loss_fn(swa_model(x), x.pow(2).sum(1, keepdim=True)).item(), optimizer.param_groups[0]["lr"])
