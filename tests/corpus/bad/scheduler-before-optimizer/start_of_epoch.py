# The old convention: scheduler.step() opens each epoch, so the first learning rate of the schedule is skipped.
# source: zju3dv/NeuralRecon#51
# expect: scheduler-before-optimizer
import torch
from torch import nn
from torch.optim.lr_scheduler import MultiStepLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(60, 5)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=15, shuffle=True)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
lr_scheduler = MultiStepLR(optimizer, milestones=[2, 4], gamma=0.5)

for epoch_idx in range(6):
    lr_scheduler.step()  # <- scheduler-before-optimizer, cause
    for sample, target in loader:
        model.train()
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(sample), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"Epoch {epoch_idx} lr {optimizer.param_groups[0]['lr']:.4f} loss {loss.item():.4f}")
